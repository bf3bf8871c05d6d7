"""A script that runs a command, and terminates the command when the parent process closes the pipe to the script.

A parent process that is killed cannot end its children itself, but the operating system closes its pipes.
"""

import signal
import subprocess
import sys
import threading


def run_with_parent() -> int:
    """Run the command in the arguments, terminate it when standard input closes, and return its exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the parent process ends the command
    with subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, close_fds=False) as child:  # inherits descriptors

        def wait_for_end() -> None:
            sys.stdin.read()
            child.terminate()

        threading.Thread(target=wait_for_end, daemon=True).start()
        return child.wait()


if __name__ == "__main__":
    sys.exit(run_with_parent())
