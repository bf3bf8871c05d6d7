"""`python -m tinybench` is the `tinybench` command."""

import sys

from tinybench.shell.cli import main

sys.exit(main())
