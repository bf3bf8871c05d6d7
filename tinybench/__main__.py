"""`python -m tinybench` is the `tinybench` command."""

import sys

from tinybench.cli import main

sys.exit(main())
