"""Read by every plain `nbgrader` command and by JupyterLab's nbgrader extensions started in this folder."""

from pathlib import Path

from autograder.course.nbgrader_settings import configure

configure(get_config(), Path(__file__).parent)  # type: ignore[name-defined]  # noqa: F821
