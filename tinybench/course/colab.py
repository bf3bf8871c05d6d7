"""Google Colab: the notebook is in the browser there, and the course's folder on a machine that will be gone."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

COLAB = "TINYBENCH_COLAB"  # the variable with the address that notebooks are opened under
READERS = ("autograder build", "save(", "course_map(", "sections(")  # what looks at the notebook's file


def keep_notebook(path: Path | str) -> None:
    """Write the notebook that is open into its file, before each cell that reads the file."""
    message = import_module("google.colab._message")
    from IPython import get_ipython

    file = Path(path).resolve()

    def write(info: Any) -> None:
        if not any(reader in info.raw_cell for reader in READERS):
            return
        notebook = message.blocking_request("get_ipynb", timeout_sec=60)["ipynb"]
        for cell in notebook["cells"]:
            cell.pop("id", None)  # Colab keeps its own among the metadata
        notebook["nbformat_minor"] = 4
        file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    get_ipython().events.register("pre_run_cell", write)
