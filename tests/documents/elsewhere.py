"""Command lines of the documents that do not run here: why, and the test that runs them."""

from __future__ import annotations

WAYS_IN = "tests/test_environment.py::test_the_ways_in_of_the_readme"
PUBLISHED_WAYS = "tests/course/test_published.py::test_a_student_starts_as_the_readme_says"
GUIDE = "tests/grading/test_instructor_page.py::test_it_holds_after_make_course"
UPDATE = "tests/course/test_published.py::test_an_update_leaves_the_students_work_alone"
TARGETS = "tests/documents/test_commands.py::test_targets_of_make_are_there"
PATHS = "tests/documents/test_commands.py::test_paths_and_programs_for_maintainers_are_there"

# By the command line: the test that runs it, or the same with other names, and why it does not run with the others.
ELSEWHERE = {
    # an environment of its own, which takes minutes
    "conda env create -f environment.yml": (WAYS_IN, "makes an environment"),
    "conda activate tinybench": (WAYS_IN, "needs the environment"),
    "pip install --no-deps -e . -e ./autograder": (WAYS_IN, "installs"),
    "autograder release --path week": ("tests/course/test_paths.py::test_release_takes_a_path", "releases seven modules"),
    "autograder release --no-verify": (WAYS_IN, "in the environment installed before"),
    "jupyter lab student": (WAYS_IN, "runs until it is stopped"),
    "python -m venv .venv": (WAYS_IN, "makes an environment"),
    "source .venv/bin/activate": (WAYS_IN, "needs the environment"),
    "pip install -e . -e ./autograder": (WAYS_IN, "installs"),
    'pip install ".[onnx]"': ("tests/test_distributions.py::test_the_library_alone_measures_a_model", "installs"),
    'pip install ".[onnx,serve]"': ("tests/test_distributions.py::test_the_library_alone_measures_a_model", "installs"),
    "pip install --no-deps -e .": (PUBLISHED_WAYS, "installs"),
    "pip install -e .": (PUBLISHED_WAYS, "installs"),
    "autograder lab": (PUBLISHED_WAYS, "runs until it is stopped"),
    "pip install --no-deps .": ("tests/test_binder.py::test_in_an_empty_environment_only_the_published_package_is_left", "installs"),
    "conda env update -f environment.yml": (WAYS_IN, "takes the file that `conda env create` takes"),
    r".venv\Scripts\activate": (WAYS_IN, "Windows' form of the line above it"),
    # these run what everything else here is about
    "make course": (GUIDE, "runs until it is stopped: the test runs `autograder course`, its last line"),
    "make test": (TARGETS, "runs this test"),
    "make audit": (TARGETS, "runs this test"),
    "make lint": (TARGETS, "asks ruff, mypy and the linter of notebooks about all files"),
    "make quick": ("tests/test_touched.py", "runs tests"),
    "make version VERSION=0.2.0": (TARGETS, "rewrites files of this repository"),
    "make dist": ("tests/test_distributions.py", "builds and installs"),
    "git tag v0.2.0 && git push origin v0.2.0": (TARGETS, "publishes"),
    "python -m tests.house": ("tests/test_wings.py", "prints figures of the files that it tests"),
    "python -m tests.minutes": (PATHS, "measures for a quarter of an hour"),
    "make demo": ("tests/test_demo.py::test_without_a_sandbox_it_does_the_rest_and_says_so", "takes minutes"),
    "make bench": (TARGETS, "takes an hour"),
    "make bench-grade": (TARGETS, "takes minutes"),
    "make lock": (TARGETS, "asks the index of packages for new versions"),
    "autograder lint --fix && autograder export && make test": (TARGETS, "ends in `make test`"),
    "python -m tests.benchmarks --help": ("tests/benchmarks/test_harness.py::test_help_lists_every_benchmark", "prints the same in this process"),
    "python -m tests.benchmarks comparison --publish": (PATHS, "takes half an hour"),
    "python -m tests.benchmarks referee": (PATHS, "measures for minutes on a quiet machine"),
    "python -m tests.benchmarks referee --load": (PATHS, "measures for minutes"),
    "python -m tests.grading.instructor_page write": (PATHS, "rewrites a file of this repository"),
    "taskset -c 0 python -m tests.leaderboard.boards 8017 5000": (PATHS, "fills a board for a load test"),
    'taskset -c 1 wrk -t1 -c32 -d5s -H "Accept-Encoding: gzip" http://127.0.0.1:8017/events/latency': (PATHS, "a load test"),
    # a module's name stands for NN or name
    "pytest tests/tinybench/test_name.py tests/tinybench/test_face.py": (PATHS, "runs with all tests"),
    "pytest tests/mutants tests/variants tests/checks -k name": (PATHS, "runs with all tests"),
    "pytest tests/attacks/notebooks/test_honest.py -k name": (PATHS, "runs with all tests"),
    "pytest tests/course/test_explained.py -k NN": (PATHS, "runs with all tests"),
    "autograder release NN_name": (GUIDE, "as `autograder release 01_result`"),
    "python -m tests.course.perfect_student NN --references": ("tests/course/test_published.py::test_a_student_who_solves_everything_needs_no_reference", "runs a notebook"),
    "python -m tests.mutants.pairs NN_name": ("tests/mutants/test_pairs.py", "runs a module's checks for minutes"),
    "python -m tests.mutants.overfit NN_name": ("tests/mutants/test_overfit.py", "runs a module's checks for minutes"),
    "python -m tests.notebooks.figures NN FOLDER": (PATHS, "runs a notebook"),
    "python -m tests.notebooks.slow NN": ("tests/notebooks/test_slow_clock.py", "runs a notebook"),
    "python -m tests.notebooks.student FOLDER NN": ("tests/notebooks/test_student.py", "runs notebooks"),
    "python -m tests.notebooks.reading NN": ("tests/notebooks/test_reading.py", "reads notebooks"),
    # servers, clusters and classes, which the tests of these commands have
    "tinybench rollout old.onnx new.onnx --data digits.npz": ("tests/tinybench/test_rollout.py::test_the_command_rolls_a_version_back_that_answers_nothing", "takes half a minute"),
    "tinybench rollout old.onnx new.onnx --data digits.npz --bound 50ms": ("tests/tinybench/test_rollout.py::test_the_command_rolls_a_version_back_that_answers_nothing", "takes half a minute"),
    "autograder grade 01_result --scheduler tcp://…": ("tests/grading/test_dask.py::test_a_worker_is_killed", "needs a cluster"),
    "autograder similarity 01_result --with ../2025": ("tests/grading/test_similarity.py::test_earlier_years", "needs two classes"),
    "autograder package --student ada": (GUIDE, "as `--student dan`"),
    "autograder leaderboard serve": ("tests/leaderboard/test_local_server.py::test_pages_and_worker_end_with_the_block", "runs until it is stopped"),
    "autograder leaderboard worker": ("tests/leaderboard/test_browser.py", "runs until it is stopped"),
    "autograder leaderboard rehearse model.onnx": ("tests/leaderboard/test_local_server.py::test_a_quick_rehearsal_measures_as_the_referee_does", "measures for minutes without --quick"),
    "autograder leaderboard enter model.onnx --event latency --wait": ("tests/leaderboard/test_outcomes.py", "needs a running leaderboard"),
    # a clone of a published repository
    "git pull": (UPDATE, "needs a remote"),
    "mv 03_latency/03_latency.ipynb 03_latency/mine.ipynb": ("tests/documents/test_commands.py::test_a_notebook_is_put_aside_as_the_published_readme_says", "needs a remote"),
    "git checkout 03_latency": ("tests/documents/test_commands.py::test_a_notebook_is_put_aside_as_the_published_readme_says", "needs a remote"),
    # with other names of the same files
    "tinybench run a.onnx b.onnx --data digits.npz --out study": ("tests/documents/test_commands.py::test_an_engineer_s_commands", "as with fp32.onnx and int8.onnx"),
    "tinybench serve digits.onnx --port 8000 --workers 2 --max-wait 5ms": ("tests/documents/test_commands.py::test_an_engineer_s_commands", "as model.onnx with other numbers; port 8000 may be taken"),
    "tinybench study app.models:classifier --data digits.npz --out hardware": ("tests/tinybench/test_cli.py::test_study", "as classifier.joblib"),
}  # fmt: skip
# Words in a sentence that are no command of their own.
NAMES = {
    "make", "conda", "pip", "uv", "nbgrader", "apt-get", "tinybench", "kill -9", "mypy --strict", "%bench", "%%bench"
}  # fmt: skip
