"""The entry point of `python -m tinybench`, which runs the `tinybench` command."""

import sys

from tinybench.shell.cli import main

sys.exit(main())
