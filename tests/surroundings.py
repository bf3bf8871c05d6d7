"""The environment that tests choose for themselves, whatever variables are set where they run.

Some variables change which kernels and how many threads numerical libraries use, and how Python or the locale behaves.
`tidy` takes them out of the environment of the test run. `of_its_own` returns the whole environment of a process that
must not depend on its surroundings, such as one under an emulated processor.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, MutableMapping

from tinybench.support.conditions.environment_variables import HARMLESS, SETTINGS

# Where programs and files are found; nothing here changes what a program computes.
KEPT = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "CI")
# Workers share the cores: numerical libraries that take all of them each would wait for one another.
CHOSEN = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "LANG": "C.UTF-8"}
# The settings that a measurement records; then Python's others, the locale, and how programs write to a terminal.
CHANGES = re.compile(
    rf"{SETTINGS.pattern}|PYTHON(?!PATH$|HOME$|PYCACHEPREFIX$|USERBASE$|STARTUP$)\w+|"
    r"LANG|LANGUAGE|LC_\w+|TZ|COLUMNS|LINES|NO_COLOR|FORCE_COLOR|CLICOLOR\w*|PY_COLORS|MPLBACKEND|VIRTUAL_ENV"
)


def changes(name: str) -> bool:
    """Return whether an environment variable changes what tests compute or print."""
    return bool(CHANGES.fullmatch(name)) and name not in HARMLESS


def tidy(environ: MutableMapping[str, str]) -> None:
    """Replace the variables that change what tests compute and print by those that the tests choose."""
    for name in [name for name in environ if changes(name)]:
        del environ[name]
    environ.update(CHOSEN)


def of_its_own(more: Mapping[str, str]) -> dict[str, str]:
    """Return an environment that holds `KEPT` variables of this one, those of `CHOSEN`, and `more`."""
    return {**{name: os.environ[name] for name in KEPT if name in os.environ}, **CHOSEN, **more}
