"""Environment variables that change the speed or the results of numerical libraries and Python."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

SETTINGS = re.compile(
    # linear algebra, threads, NumPy, ONNX Runtime and its kernels, memory
    r"(OPENBLAS|GOTO|GOTOBLAS|MKL|BLIS|NVPL|ARMPL|FLEXIBLAS|VECLIB|OMP|KMP|GOMP|TBB|NUMEXPR|NUMBA|NPY|NUMPY|ORT|DNNL|"
    r"ONEDNN|MALLOC)_\w+|FLEXIBLAS|GLIBC_TUNABLES|LD_PRELOAD|DYLD_INSERT_LIBRARIES|"
    r"PYTHON(HASHSEED|OPTIMIZE|MALLOC|MALLOCSTATS|DEVMODE|TRACEMALLOC|PROFILEIMPORTTIME|ASYNCIODEBUG|PERFSUPPORT|"
    r"NODEBUGRANGES|DONTWRITEBYTECODE|UNBUFFERED|_GIL|_JIT|_CPU_COUNT)"
)
# variables without an effect on times; threadpoolctl, joblib and scikit-learn set them on import, as does the sandbox
HARMLESS = ("KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK", "ORT_DISABLE_TELEMETRY")
# variables that disable processor instructions
LIMITS = ("NPY_DISABLE_CPU_FEATURES", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")

VARIABLE = " (environment)"  # the suffix of a condition's name if the condition is an environment variable
RECORDED = "environment"  # the condition that lists all variables; a variable missing from this list was not set
UNSET = "unset"


def read_settings(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the set environment variables that change speed or results, in alphabetical order."""
    return {
        name: environ[name]
        for name in sorted(environ)
        if environ[name] and SETTINGS.fullmatch(name) and name not in HARMLESS
    }


def conditions_of_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables as conditions of a measurement: the list of all names, and the value of each."""
    listed = ", ".join(settings) or "no variable set"
    return {RECORDED: listed, **{f"{name}{VARIABLE}": value for name, value in settings.items()}}


def differing(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the conditions that differ between two records, with both values. Skip conditions that one record lacks.

    If a record lists its environment variables (`RECORDED`), a variable outside this list has the value `UNSET`.
    """

    def stated(record: Mapping[str, str], name: str) -> str | None:
        return record.get(name, UNSET if name.endswith(VARIABLE) and RECORDED in record else None)

    names = [name for name in dict.fromkeys([*before, *after]) if name != RECORDED]
    pairs = ((name, stated(before, name), stated(after, name)) for name in names)
    return {name: (old, new) for name, old, new in pairs if old is not None and new is not None and old != new}
