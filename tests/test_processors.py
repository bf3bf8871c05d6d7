"""What concerns integers holds on every processor: tests marked `processor` run natively, and here under others."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.needs import ARM, require
from tests.surroundings import CHOSEN, KEPT, of_its_own
from tests.test_portable import PROCESSOR
from tests.test_surroundings import ODD

ROOT = Path(__file__).resolve().parents[1]
PAIRS = [(a, w) for a in (np.uint8, np.int8) for w in (np.uint8, np.int8)]
# ONNX Runtime's sums of uint8 × int8 where two products at once go into 16 bits: AVX2 without VNNI. SSE4.2 takes 32.
SATURATED = 1_048_544
SUMS = {"Haswell": {SATURATED}, "Nehalem": {64 * 255 * 127}}
SECONDS = 3600  # against hanging; on two free cores it takes two minutes


@pytest.mark.processor
@pytest.mark.parametrize(("left", "right"), PAIRS, ids=lambda kind: kind.__name__)
def test_products_of_the_runtime(left: type, right: type) -> None:
    import onnxruntime
    from onnx import TensorProto, helper

    def numbers(name: str, kind: type, shape: list[int]) -> tuple[object, np.ndarray]:
        tensor = helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), shape)
        return tensor, np.full(shape, np.iinfo(kind).max, kind)

    a, w = numbers("a", left, [1, 64]), numbers("w", right, [64, 1])
    y = helper.make_tensor_value_info("y", TensorProto.INT32, [1, 1])
    graph = helper.make_graph([helper.make_node("MatMulInteger", ["a", "w"], ["y"])], "product", [a[0], w[0]], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found = int(session.run(None, {"a": a[1], "w": w[1]})[0][0, 0])
    exact = 64 * np.iinfo(left).max * np.iinfo(right).max
    mixed = (left, right) == (np.uint8, np.int8)
    assert found in (SUMS.get(PROCESSOR, {exact, SATURATED}) if mixed else {exact})


@pytest.mark.processor
@pytest.mark.parametrize("module", ["11_onnx", "12_quantize", "13_compress"])
def test_the_reference_passes_its_checks(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from autograder.course.module_build import run_checks
    from autograder.course.notebook import read_notebook

    path = ROOT / "modules" / module / f"{module}.ipynb"
    monkeypatch.chdir(path.parent)
    assert {name: why for name, why in run_checks(read_notebook(path), path).items() if why} == {}


@pytest.mark.processor
@pytest.mark.parametrize(("kind", "operator"), [("float", "MatMul"), ("dynamic", "MatMulInteger"), ("static", "QuantizeLinear")])  # fmt: skip
def test_entries_pass_the_entry_check(kind: str, operator: str, tmp_path: Path) -> None:
    from autograder.leaderboard.entry.validate import check
    from tinybench.quantize import quantize_dynamic_int8, quantize_static_int8
    from tinybench.support.basics.layer_networks import initial_layers, save_layers

    path = save_layers(initial_layers((784, 32, 10), 0), tmp_path / "entry.onnx")
    if kind == "dynamic":
        path = quantize_dynamic_int8(path)
    if kind == "static":
        path = quantize_static_int8(path, np.random.default_rng(0).uniform(size=(64, 784)).astype(np.float32))
    facts = check(path.read_bytes())
    assert operator in facts.operators
    assert facts.weights >= 784 * 32 + 32 * 10


def emulated(
    emulator: list[str | Path], processor: str, arguments: list[str | Path], report: Path, **more: str
) -> list[str]:
    """Run pytest on another processor; return the modules of the tests that passed, one for each test."""
    require("qemu")
    plain = ["-q", "-p", "no:cacheprovider", f"--junit-xml={report}", "-o", "junit_family=xunit1"]
    own = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "TINYBENCH_PROCESSOR": processor}
    run = subprocess.run(
        [*emulator, "-m", "pytest", *plain, *arguments],
        cwd=ROOT, env=of_its_own(own | more), capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip
    said = [line for line in run.stderr.splitlines() if "TCG doesn't support" not in line]
    assert run.returncode == 0, "\n".join([f"on {processor}:", run.stdout, *said])
    cases = ElementTree.parse(report).iter("testcase")
    return [str(case.get("classname")) for case in cases if case.find("skipped") is None]


def test_an_emulated_run_inherits_no_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A kernel for AVX2 that a variable asks for would be an illegal instruction on a processor without AVX2."""
    given: dict[str, str] = {}

    def run(*_: Any, env: dict[str, str], **__: Any) -> Any:
        given.update(env)
        raise InterruptedError

    monkeypatch.setattr("tests.test_processors.require", lambda name: None)
    monkeypatch.setattr(subprocess, "run", run)
    for name, value in ODD.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InterruptedError):
        emulated(["qemu-x86_64"], "Nehalem", [], tmp_path, PYTHONPATH="packages")
    own = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD", "TINYBENCH_PROCESSOR", "PYTHONPATH"}
    assert given.keys() <= {*KEPT, *CHOSEN, *own}
    assert {name: given[name] for name in ODD if name in given} == {
        name: CHOSEN[name] for name in ODD if name in CHOSEN
    }


@pytest.mark.slow
@pytest.mark.parametrize("processor", SUMS)
def test_on_another_x86(processor: str, tmp_path: Path) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("another x86-64 is played by one: this Python is of another kind")
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    marked = [path for path in files if "pytest.mark.processor" in path.read_text("utf-8")]
    select = ["-p", "tests.emulated", "-m", "processor and not slow"]
    emulator = ["qemu-x86_64", "-cpu", processor, sys.executable]
    passed = emulated(emulator, processor, [*select, *marked], tmp_path / "report.xml")
    assert set(passed) == {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in marked}
    assert len(passed) >= 45


@pytest.mark.slow
def test_numpy_parts_on_aarch64(tmp_path: Path) -> None:
    if platform.machine() == "aarch64":
        pytest.skip("this is one: tests/test_portable.py has run on it")
    require("aarch64")
    python = next((ARM / "root" / "usr" / "bin").glob("python3.[0-9]*"))
    paths = os.pathsep.join([str(ARM / "packages"), str(ROOT)])
    arguments: list[str | Path] = [ROOT / "tests" / "test_portable.py", "--noconftest"]
    passed = emulated(
        ["qemu-aarch64", "-L", ARM / "root", python], "aarch64", arguments, tmp_path / "report.xml",
        PYTHONPATH=paths, TINYBENCH_ABSENT="onnxruntime sklearn",
    )  # fmt: skip
    assert len(passed) >= 60
