"""A script that runs a command until the parent process closes its end of the pipe to standard input.

A killed parent cannot end its children, but the system still closes the pipe.
"""

import signal
import subprocess
import sys
import threading


def run_with_parent() -> int:
    """Run the command given as arguments. Terminate it when standard input closes, and return its exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal; the parent decides
    with subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL) as child:

        def let_go() -> None:
            sys.stdin.read()
            child.terminate()

        threading.Thread(target=let_go, daemon=True).start()
        return child.wait()


if __name__ == "__main__":
    sys.exit(run_with_parent())
