"""A script: run a command for as long as the process that started this one keeps its end of the pipe open.

Who is killed ends no child of its own; the pipe is closed by the system all the same.
"""

import signal
import subprocess
import sys
import threading


def run_with_parent() -> int:
    """Run the command of the arguments, terminate it when standard input closes, and return its exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all of a terminal; the one who holds the pipe decides
    with subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL) as child:

        def let_go() -> None:
            sys.stdin.read()
            child.terminate()

        threading.Thread(target=let_go, daemon=True).start()
        return child.wait()


if __name__ == "__main__":
    sys.exit(run_with_parent())
