"""The `autograder course` command, which starts JupyterLab with the released course, nbgrader and the leaderboard."""

from __future__ import annotations

import getpass
import os
import platform
import secrets
import webbrowser
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autograder.course.nbgrader_settings import KERNELS, MODULES, STUDENT, configure, with_root
from autograder.course.notebook import NotebookError, course_notebooks, read_notebook
from autograder.course.student_lab import without_news
from autograder.sandbox.bubblewrap import unavailable

if TYPE_CHECKING:
    from nbformat.sign import NotebookNotary

EXTENSIONS = ("assignment_list", "course_list", "formgrader", "validate_assignment")

ADDRESSES = """
TinyBench is running; Ctrl+C ends it.

  First notebook   {url}lab/tree/{first}?token={token}
  JupyterLab       {url}lab?token={token}
  Formgrader       {url}lab?formgrader=true&token={token}
  Assignment List  in JupyterLab, menu Nbgrader; Create Assignment is the tab at the right edge
  Validate         in JupyterLab, the button above every notebook
  Exchange         {exchange}
  Leaderboard      {leaderboard}

  This clone holds all solutions: it is for instructors, and for those who study alone. A class clones what
  `autograder publish` writes.
"""


@click.command()
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
@click.option("--port", type=int, help="Listen on this port instead of JupyterLab's usual one or a free one near it.")
@with_root
def course(root: Path, no_browser: bool, port: int | None) -> int:
    """Start JupyterLab with the course and nbgrader's pages.

    Also start a local exchange and the leaderboard, and print all addresses.
    """
    return serve_course(root, browser=not no_browser, port=port)


def serve_course(root: Path, *, browser: bool = True, port: int | None = None) -> int:
    """Serve the course at `root` until interrupted, by default on JupyterLab's usual port or one near it."""
    root = root.resolve()
    names = [notebook.stem for notebook in course_notebooks(root)]
    if not names:
        raise NotebookError(root / MODULES, None, "holds no NN_name/NN_name.ipynb; there is nothing to serve")
    use_configuration(root)
    outdated = [name for name in names if is_outdated(root, name)]
    if outdated:
        from autograder.course.release import release_all

        print("Building the student release ...", flush=True)
        release_all(root, outdated, verify=False)  # only `autograder release` verifies: a newcomer need not wait
    fill_exchange(root, names)
    with ExitStack() as servers:
        without = unavailable()
        leaderboard = f"left out, and so is grading: {without}" if without else start_leaderboard(root, servers)
        run_jupyterlab(root, f"{STUDENT}/{names[0]}/{names[0]}.ipynb", browser, port, leaderboard)
    return 0


def start_leaderboard(root: Path, servers: ExitStack) -> str:
    """Start the leaderboard and return its address and token as text. If it cannot start, return the reason.

    The leaderboard runs until `servers` closes. Notebooks read its address and token from environment variables.
    The course also runs without a leaderboard.
    """
    try:
        from autograder.leaderboard.settings import load
        from autograder.leaderboard.store.store import Store
        from autograder.leaderboard.web.local_server import database_of, running

        address = servers.enter_context(running(root))
        student = _user()
        store = Store(database_of(root))
        token = store.add_token(student, load().quota.token_days)
        store.close()
    except Exception as error:  # such as a missing package, no sandbox, or no room on the disk
        servers.close()
        return f"not running: {error}"
    os.environ.update(TINYBENCH_LEADERBOARD=address, TINYBENCH_TOKEN=token)  # kernels inherit them
    return f"{address}  (you are {student}; its pages ask for your token {token})"


def _user() -> str:
    """Return the current user's name, or "student" if the user has none. Models are entered under this name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return "student"


def use_configuration(root: Path) -> None:
    """Make Jupyter find the course's configuration and, if a sandbox is available, the sandboxed kernel."""
    os.chdir(root)
    places = {"JUPYTER_CONFIG_PATH": root} | ({} if unavailable() else {"JUPYTER_PATH": KERNELS})
    for variable, folder in places.items():
        path = [str(folder), os.environ.get(variable, "")]
        os.environ[variable] = os.pathsep.join(filter(None, path))


def is_outdated(root: Path, name: str) -> bool:
    """Return whether a module is not yet released to the student, or is newer than its release."""
    paths = (root / folder / name / f"{name}.ipynb" for folder in (MODULES, "course/release", STUDENT))
    source, released, students = paths
    return not (released.is_file() and students.is_file()) or source.stat().st_mtime > released.stat().st_mtime


def fill_exchange(root: Path, names: list[str]) -> None:
    """Put the released modules into the local exchange, where nbgrader's Assignment List finds them."""
    if platform.system() == "Windows":
        print("nbgrader has no exchange on Windows; everything else works.", flush=True)
        return
    from nbgrader.apps import NbGraderAPI  # takes two seconds
    from traitlets.config import Config

    config = configure(Config(), root)
    config.ExchangeReleaseAssignment.force = True  # replaces the files of an earlier start
    api = NbGraderAPI(config=config)
    print(f"Filling the exchange, modules: {len(names)} ...", flush=True)
    for name in names:
        result = api.release_assignment(name)
        if not result["success"]:
            reason = result.get("log") or result["error"]
            raise NotebookError(name, None, f"nbgrader could not put it into the exchange: {reason}")


def run_jupyterlab(root: Path, first: str, browser: bool, port: int | None, leaderboard: str) -> None:
    """Run JupyterLab in this process. The options apply to this server only and are not written to any file."""
    from jupyterlab.labapp import LabApp

    token = secrets.token_hex(16)
    opens = browser and has_browser()
    options = {
        "ServerApp.root_dir": root,
        "ServerApp.jpserver_extensions": {f"nbgrader.server_extensions.{name}": True for name in EXTENSIONS},
        "ServerApp.reraise_server_extension_failures": True,
        "ServerApp.open_browser": opens,
        "ServerApp.answer_yes": True,
        "ServerApp.allow_root": hasattr(os, "geteuid") and os.geteuid() == 0,
        "Application.log_level": "WARN",
        "IdentityProvider.token": token,
        "LabApp.default_url": f"/lab/tree/{first}",
        "LabApp.workspaces_dir": root / "course" / "workspaces",
    }
    if port is not None:
        options["ServerApp.port"] = port
    if can_encrypt():
        options["KernelManager.transport_encryption"] = "auto"
    server = LabApp.initialize_server([f"--{name}={value}" for name, value in options.items()])
    server.web_app.settings["page_config_hook"] = without_news
    # Jupyter Server passes milliseconds where Tornado expects seconds, and Tornado warns. This server needs no pings
    server.web_app.settings["ws_ping_interval"] = 0
    sign_untouched(server.contents_manager.notary, root / STUDENT)
    exchange = root / "course" / "exchange"
    places = {"first": first, "exchange": exchange, "leaderboard": leaderboard}
    told = [ADDRESSES.format(url=server.connection_url, token=token, **places)]
    if browser and not opens:
        told.append("This machine has no browser that could be opened: open the first address in one.\n")
    # Jupyter Server binds its port in its event loop: an address printed earlier might refuse connections
    server.io_loop.add_callback(print, *told, sep="\n", flush=True)
    server.start()


def can_encrypt() -> bool:
    """Return whether the connection to kernels can be encrypted. Newer kernels warn if it is not."""
    import zmq
    from jupyter_client.manager import KernelManager

    return "transport_encryption" in KernelManager.class_trait_names() and zmq.has("curve")


def sign_untouched(notary: NotebookNotary, student: Path) -> None:
    """Sign the student's notebooks that have no outputs. Only notebooks with outputs need the user's trust."""
    for path in student.rglob("*.ipynb"):
        with suppress(NotebookError):
            notebook = read_notebook(path)
            if not any(cell.get("outputs") for cell in notebook.cells):
                notary.sign(notebook)


def has_browser() -> bool:
    """Return whether a browser can be opened. A server or a container may not have one."""
    try:
        return bool(webbrowser.get())
    except webbrowser.Error:
        return False
