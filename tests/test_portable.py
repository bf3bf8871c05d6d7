"""The package passes the hidden checks of what needs little more than NumPy, here and on aarch64 (test_processors.py)."""

from __future__ import annotations

import os
import platform
from importlib import import_module

import pytest

from tests.house import lesson

PROCESSOR = os.environ.get("TINYBENCH_PROCESSOR", "")  # the one that is emulated
ABSENT = os.environ.get("TINYBENCH_ABSENT", "").split()  # packages that do not run there
MODULES = ["m01_result", "m02_timer", "m04_accuracy", "m07_comparison", "m09_pareto", "m11_onnx", "m12_quantize", "m13_compress", "m14_load", "m14_scenarios", "m15_bottleneck", "m15_scaling", "m16_production", "m16_rollout"]  # fmt: skip
CHECKS = [
    f"{module}.{name}"
    for module in MODULES
    for name, check in vars(import_module(f"autograder.checks.{module}")).items()
    if getattr(check, "pieces", ())
]


def test_this_is_the_processor_it_is_said_to_be() -> None:
    assert (platform.machine() == "aarch64") >= (PROCESSOR == "aarch64")


@pytest.mark.parametrize("name", CHECKS)
def test_the_package_passes_hidden_checks(name: str) -> None:
    module, _, function = name.partition(".")
    check = getattr(import_module(f"autograder.checks.{module}"), function)
    try:
        check(lesson(module.partition("_")[2]))
    except ModuleNotFoundError as missing:
        if missing.name not in ABSENT:
            raise
        pytest.skip(f"{missing.name} does not run here")
