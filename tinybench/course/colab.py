"""Support for Google Colab, where the notebook is in the browser and the course folder on a temporary machine."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

COLAB = "TINYBENCH_COLAB"  # the environment variable with the base address of the notebooks
READERS = ("autograder build", "save(", "course_map(", "sections(")  # code that reads the notebook's file


def keep_notebook(path: Path | str) -> None:
    """Arrange for the open notebook to be written to its file before running any cell that reads the file."""
    message = import_module("google.colab._message")
    from IPython import get_ipython

    file = Path(path).resolve()

    def write(info: Any) -> None:
        if not any(reader in info.raw_cell for reader in READERS):
            return
        notebook = message.blocking_request("get_ipynb", timeout_sec=60)["ipynb"]
        for cell in notebook["cells"]:
            cell.pop("id", None)  # Colab keeps its own ids in the metadata
        notebook["nbformat_minor"] = 4
        file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    get_ipython().events.register("pre_run_cell", write)
