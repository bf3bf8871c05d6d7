"""Templates for the text files of a published folder, such as the README. Names in braces are placeholders."""

README = """\
# {title}
{badges}
Build, then use, a library that measures machine-learning inference honestly, in Jupyter notebooks, one after the other.
Where a cell raises `NotImplementedError`, it is your turn; the check below it says what is wrong. When all checks of a
notebook pass, its last cell puts your code into `tinybench/`, and the next notebook runs on it.

Start with `map.ipynb`: it shows every module, how far you are, and what comes next. Beside it are a `glossary.md` and
a `cheat_sheet.pdf` of two pages (also as a web page, `cheat_sheet.html`).

Modules here: {modules}.

## Start

On [Binder](https://mybinder.org), without installing anything: click on its badge above, if there is one, or give
Binder the address of this repository. Binder forgets everything when you leave: see *Save your work*.

On Google Colab, if there is a badge for it above: open a notebook and run its first code cell. It fetches this
repository and installs what is missing. *File → Save a copy in Drive* keeps your notebook; *Save your work* keeps all.

With [conda](https://conda-forge.org/download/), on any system:

```bash
conda env create -f environment.yml
conda activate tinybench
pip install --no-deps -e .
autograder lab
```

With Python 3.11 or newer alone, on Linux and macOS (on Windows the second line is `.venv\\Scripts\\activate`):

```bash
python -m venv .venv
source .venv/bin/activate
pip install -e .
autograder lab
```

On a JupyterHub where this environment is installed already, clone this repository and open `map.ipynb`.

## Whose code is it?

```bash
autograder status
```

shows for each module whether it is yours, a reference that your instructor released, or not built yet. When Python says
that a module *is not built yet*, finish its notebook and run the last cell. If you cannot, ask your instructor for the
reference of this module: it then comes with the next update. Your own code always comes before a reference.

## Save your work

The last cells of `map.ipynb` put all your work into one file to download, and take it up again from that file. In a
terminal:

```bash
autograder save my-work.zip
autograder restore my-work.zip
```

It holds the notebooks you worked on, the modules you built, and which checks have passed. Whatever `restore` replaces
is kept in a `before-restore-….zip`.

## Get an update without losing work

```bash
git pull
```

brings new modules and references. What you built in `tinybench/` is yours alone: git does not know it. If git says that
your changes to a notebook *would be overwritten*, nothing has happened yet. Put your notebook aside, take the new one,
and copy your cells over:

```bash
mv 03_latency/03_latency.ipynb 03_latency/mine.ipynb
git checkout 03_latency
git pull
```

## Hand in

Hand in the notebook `NN_name/NN_name.ipynb` itself, the way your instructor says. The package is not handed in.
"""

GITIGNORE = """\
.venv/
*.egg-info/
__pycache__/
.ipynb_checkpoints/
*.backup
*.backup.ipynb
.progress.json
/my-work*.zip
/before-restore-*.zip
/course/
# what you build
{built}
"""

PYPROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "tinybench-student"
version = "{version}"
description = "Your tinybench, as far as you have built it, and the commands of the course."
requires-python = ">=3.11"
dependencies = [
{dependencies}
]

[project.scripts]
autograder = "autograder.cli:main"
tinybench = "tinybench.shell.cli:main"

[tool.setuptools.packages.find]
include = ["tinybench*", "autograder*"]

[tool.setuptools.package-data]
tinybench = ["py.typed"]
"*" = ["*.toml"]
"""

ENVIRONMENT = """\
name: tinybench
channels:
  - conda-forge
dependencies:
  - python=3.11
  - pip
  - pip:
{dependencies}
"""

POST_BUILD = """\
#!/bin/bash
# Binder runs this once, in the root of the repository. Any failure stops the build of the image.
set -euo pipefail

pip install --no-cache-dir --no-deps -e .
etc=$(python -c 'import sys; print(sys.prefix)')/etc/jupyter
mkdir -p "$etc"
echo 'from autograder.course.student_lab import configure; configure(get_config())' >>"$etc/jupyter_server_config.py"
"""
