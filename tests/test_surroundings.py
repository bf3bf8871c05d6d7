"""Tests choose their own environment: what is set where they run changes neither kernels nor threads nor the locale."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.surroundings import CHOSEN, KEPT, changes

ROOT = Path(__file__).resolve().parents[1]
ODD = {
    "OPENBLAS_CORETYPE": "Nehalem", "OPENBLAS_NUM_THREADS": "7", "OPENBLAS_L2_SIZE": "1", "OPENBLAS_VERBOSE": "2",
    "GOTO_NUM_THREADS": "3", "MKL_NUM_THREADS": "5", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2", "MKL_DEBUG_CPU_TYPE": "5",
    "BLIS_ARCH_TYPE": "generic", "NVPL_BLAS_DEBUG_CPU_TYPE": "1", "OMP_NUM_THREADS": "7", "OMP_WAIT_POLICY": "active",
    "KMP_AFFINITY": "none", "ORT_LOGGING": "1", "NPY_DISABLE_CPU_FEATURES": "AVX512_ICL",
    "GLIBC_TUNABLES": "glibc.malloc.check=1", "PYTHONHASHSEED": "7", "PYTHONUNBUFFERED": "1", "PYTHONMALLOC": "debug",
    "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore", "PYTHONDEVMODE": "", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0",
    "LANG": "tr_TR.UTF-8", "LC_ALL": "POSIX", "LC_NUMERIC": "de_DE.UTF-8", "TZ": "Asia/Kolkata", "COLUMNS": "20",
    "NO_COLOR": "1", "FORCE_COLOR": "1", "MPLBACKEND": "svg", "VIRTUAL_ENV": "/nowhere",
}  # fmt: skip
SEEN = "import json, os, threadpoolctl, numpy; print(json.dumps([dict(os.environ), threadpoolctl.threadpool_info()]))"


def test_no_odd_environment_reaches_the_tests() -> None:
    """In another run, which is started with every odd value, and in the processes that it starts."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "inside", __file__]
    run = subprocess.run(words, env=plain | ODD | {"ODD": "1"}, cwd=ROOT, capture_output=True, text=True, encoding="utf-8")  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    assert "1 passed" in run.stdout


@pytest.mark.skipif("ODD" not in os.environ, reason="part of the test above")
def test_inside() -> None:
    from threadpoolctl import threadpool_info

    assert {name: value for name, value in os.environ.items() if changes(name)} == CHOSEN
    bare = {name: os.environ[name] for name in KEPT if name in os.environ} | CHOSEN
    seen, pools = json.loads(subprocess.run([sys.executable, "-c", SEEN], env=bare, capture_output=True, text=True, check=True).stdout)  # fmt: skip
    child, _ = json.loads(
        subprocess.run([sys.executable, "-c", SEEN], capture_output=True, text=True, check=True).stdout
    )
    assert threadpool_info() == [] or threadpool_info() == pools
    assert {name: child[name] for name in ODD if name in child} == {name: seen[name] for name in ODD if name in seen}
