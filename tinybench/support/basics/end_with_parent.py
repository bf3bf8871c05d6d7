"""A script that runs a command until the process that started the script closes its end of the pipe.

A killed process cannot end its children, but the system closes its pipes.
"""

import signal
import subprocess
import sys
import threading


def run_with_parent() -> int:
    """Run the command in the arguments, terminate it when standard input closes, and return its exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that holds the pipe decides
    with subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, close_fds=False) as child:  # with descriptors for it

        def wait_for_end() -> None:
            sys.stdin.read()
            child.terminate()

        threading.Thread(target=wait_for_end, daemon=True).start()
        return child.wait()


if __name__ == "__main__":
    sys.exit(run_with_parent())
