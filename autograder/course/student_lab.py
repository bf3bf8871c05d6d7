"""JupyterLab as students see it: no prompt about news, the course's tools out of sight, and the sidebars closed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jupyter_core.paths import jupyter_data_dir
from traitlets.config import Config

NEWS = "@jupyterlab/apputils-extension:announcements"
WORKSPACE = "default-37a8.jupyterlab-workspace"  # the name that JupyterLab gives to its default workspace
CLOSED = {"collapsed": True, "visible": True, "widgets": []}


def without_news(handler: object, page_config: dict[str, Any]) -> dict[str, Any]:
    """Return the page's configuration without JupyterLab's prompt about news from the web."""
    return {**page_config, "disabledExtensions": [*page_config["disabledExtensions"], NEWS]}


def configure(config: Any) -> Any:
    """Return Jupyter Server's configuration with the settings for students."""
    config.ServerApp.tornado_settings.update({"page_config_hook": without_news})
    config.ContentsManager.hide_globs = ["__pycache__", "*.pyc", "*~", "autograder", "binder"]
    config.LabApp.workspaces_dir = str(_workspaces())
    return config


def _workspaces() -> Path:
    """Return the folder of the workspaces. If it is new, its default workspace has closed sidebars."""
    folder = Path(jupyter_data_dir(), "tinybench-workspaces")
    if not (folder / WORKSPACE).exists():
        folder.mkdir(parents=True, exist_ok=True)
        data = {"layout-restorer:data": {"main": {"dock": None}, "left": CLOSED, "right": CLOSED}}
        (folder / WORKSPACE).write_text(json.dumps({"data": data, "metadata": {"id": "default"}}), encoding="utf-8")
    return folder


def run(folder: Path, arguments: Sequence[str]) -> None:
    """Run JupyterLab on the map of a student's folder until it is stopped."""
    from jupyterlab.labapp import LabApp

    LabApp.initialize_server([str(folder / "map.ipynb"), *arguments], config=configure(Config())).start()
