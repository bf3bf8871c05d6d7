"""Inside the outer sandbox: stock nbgrader on a private copy of a course, then what came of it, as JSON."""

import base64
import json
import os
import socket
import subprocess
import sys
from pathlib import Path


def main(template: str, assignment: str) -> None:
    """Grade everything, and print gradebook, executed notebooks and the number of processes that stayed."""
    course = Path("/tmp/course")
    subprocess.run(["cp", "-a", template, str(course)], check=True)
    jupyter = socket.create_server(("127.0.0.1", 8888))  # stands for the instructor's
    for name, module in {"nbgrader": "nbgrader.apps.nbgraderapp", "alembic": "alembic.config"}.items():
        program = Path("/tmp/bin", name)  # which nbgrader calls by name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!{sys.executable}\nfrom {module} import main\nmain()\n")
        program.chmod(0o755)
    os.environ["PATH"] = f"/tmp/bin:{os.environ['PATH']}"
    with open("/tmp/log", "wb") as log:
        subprocess.run(["nbgrader", "autograde", assignment], cwd=course, stdout=log, stderr=log, check=False)
    jupyter.close()
    executed = course.glob(f"autograded/*/{assignment}/{assignment}.ipynb")
    others = [entry for entry in os.listdir("/proc") if entry.isdigit() and int(entry) not in (1, os.getpid())]
    report = {
        "gradebook": base64.b64encode((course / "gradebook.db").read_bytes()).decode(),
        "notebooks": {path.parts[-3]: path.read_text(encoding="utf-8") for path in executed},
        "left": len(others),
    }
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
