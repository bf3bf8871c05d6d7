# Each target is one command, which you can also type yourself after `source .venv/bin/activate`.
SHELL := /bin/bash
PYTHON ?= python3
export PYTHON
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# uv trusts the certificates that this system trusts.
export UV_SYSTEM_CERTS := true
# It makes Python skip every assert: tests and checks would find nothing.
unexport PYTHONOPTIMIZE
# Prints what the target does: the text behind the two number signs of its line.
say = @sed -n 's/^$@:.*\#\# /== $@: /p' Makefile
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help course test audit quick demo system sandbox export release lint bench bench-grade minutes lock version dist

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /make \1	/p' Makefile | expand -t 18

course: sandbox $(READY)  ## for instructors and those who study alone: release the course, open it in JupyterLab
	$(say)
	autograder course

test audit: export LEFT_OUT := $(CURDIR)/.venv/.left-out
PYTEST = pytest -n 3 --durations=12 --dist loadfile --no-loadscope-reorder

test: system lint  ## (13 min) lint, every notebook, check and command, and one case of each family of the audit
	$(say)
	@rm -f $(LEFT_OUT)
	$(PYTEST) -m "not audit" $(if $(CI),--cov --cov-report= --cov-fail-under=85)

audit: system $(READY)  ## (22 min) all wrong and honest solutions, attacks, processors, crowds and benchmarks
	$(say)
	@rm -f $(LEFT_OUT)
	@.ci/install-arm64 || [ -z "$$CI" ]
	$(PYTEST) -m audit

quick: lint  ## (2 min) lint, and the tests of what differs from the last commit, nearest first
	$(say)
	python -m tests.touched

demo: sandbox $(READY)  ## grade a small class without a browser, measure a model, enter models to the Olympics
	$(say)
	autograder demo

# What may not be installed is left out, and said so at the end; only CI has to have it all.
system:
	@.ci/install-system || [ -z "$$CI" ]

sandbox:
	@.ci/install-system sandbox || true

export: $(READY)  ## rewrite tinybench/ from the notebooks
	$(say)
	autograder export

release: $(READY)  ## build the student notebooks, and prove that untouched they score 0
	$(say)
	autograder release

lint: $(READY)  ## (20 s) style, types, clean notebooks, and tinybench/ in step with them
	$(say)
	ruff check && ruff format --check && mypy && autograder lint && autograder export --check

bench: $(READY)  ## compare the timed loop, comparisons, the load generator and the profiler with their peers
	$(say)
	python -m tests.benchmarks

bench-grade: $(READY)  ## (35 min) grade a class on each module, by stock nbgrader and by autograder grade
	$(say)
	python -m tests.benchmarks grading

minutes: $(READY)  ## where the seconds of grading and testing go
	$(say)
	python -m tests.minutes

version: $(READY)  ## begin a release: `make version VERSION=0.2.0` sets the number everywhere
	$(say)
	@[[ "$(VERSION)" =~ ^[0-9]+\.[0-9]+\.[0-9]+$$ ]] || { echo "VERSION is three numbers: make version VERSION=0.2.0" >&2; exit 1; }
	sed -i.old 's/^version = ".*"/version = "$(VERSION)"/' pyproject.toml autograder/pyproject.toml
	sed -i.old "s/^## \[.*\] - unreleased/## [$(VERSION)] - $$(date +%F)/" CHANGELOG.md
	rm pyproject.toml.old autograder/pyproject.toml.old CHANGELOG.md.old
	autograder export

dist: $(READY)  ## build both packages into dist/, and test them in fresh environments
	$(say)
	rm -rf dist
	uv build --out-dir dist . && uv build --out-dir dist autograder
	pytest -q tests/test_distributions.py

lock: $(READY)  ## renew requirements.lock from the two pyproject.toml
	$(say)
	uv pip compile pyproject.toml autograder/pyproject.toml --extra onnx --extra serve --extra dev --no-emit-package tinybench-ml --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate -o requirements.lock

$(READY): requirements.lock pyproject.toml autograder/pyproject.toml
	@echo "== environment: .venv, from requirements.lock"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "TinyBench needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	@.ci/install-system venv
	$(PYTHON) -m venv .venv
	python -m pip install --quiet uv
	uv pip install --python .venv --compile-bytecode --require-hashes -r requirements.lock
	uv pip install --python .venv --no-deps --editable . --editable ./autograder
	@touch $@
