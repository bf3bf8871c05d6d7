"""The entry point of ``python -m autograder``, which runs the `autograder` command."""

import sys

from autograder.cli import main

sys.exit(main())
