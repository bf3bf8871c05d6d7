"""Facts about NVIDIA GPUs, and their energy, from the driver's management library NVML."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tinybench.support.basics.short_reprs import short_repr

# NVML's names of the reasons for a lower clock rate, and ours; an idle GPU is not slowed
SLOWDOWNS = {
    "nvmlClocksEventReasonSwPowerCap": "power limit",
    "nvmlClocksEventReasonSwThermalSlowdown": "heat",
    "nvmlClocksThrottleReasonHwThermalSlowdown": "heat",
    "nvmlClocksThrottleReasonHwPowerBrakeSlowdown": "power brake",
    "nvmlClocksEventReasonApplicationsClocksSetting": "application clocks",
}


@dataclass(frozen=True)
class Gpu:
    """Facts about one GPU. A fact that the GPU does not report is None.

    Attributes
    ----------
    memory_bytes, memory_used_bytes
        The GPU's memory in bytes, and what all processes together use of it.
    utilisation
        Fraction of the last sampling period in which a kernel ran.
    watts, most_watts
        Power in W at the moment, and the enforced limit.
    clock_hz, most_clock_hz
        Rate of the multiprocessors' clock at the moment, and the highest.
    celsius
        Temperature in °C.
    slowed_by
        Why the clock rate is below the highest at the moment, such as ``("heat",)``.
    """

    index: int
    name: str
    driver: str
    memory_bytes: int | None
    memory_used_bytes: int | None
    utilisation: float | None
    watts: float | None
    most_watts: float | None
    clock_hz: float | None
    most_clock_hz: float | None
    celsius: float | None
    slowed_by: tuple[str, ...]

    __repr__ = short_repr

    def __str__(self) -> str:
        """Return one line of text."""
        parts = [
            _text(self.memory_used_bytes, self.memory_bytes, 2**-30, "GiB", " of memory used"),
            _text(self.utilisation, None, 100, "%", " busy"),
            _text(self.watts, self.most_watts, 1, "W"),
            _text(self.clock_hz, self.most_clock_hz, 1e-6, "MHz"),
            _text(self.celsius, None, 1, "°C"),
            f"slowed by {' and '.join(self.slowed_by)}" if self.slowed_by else "",
        ]
        return f"GPU {self.index}: {self.name}, driver {self.driver}; " + ", ".join(filter(None, parts))


def _text(value: float | None, most: float | None, factor: float, unit: str, more: str = "") -> str:
    if value is None:
        return ""
    return f"{value * factor:.0f} {unit}" + (f" of {most * factor:.0f} {unit}" if most else "") + more


def load_nvml() -> Any:
    """Return the module ``pynvml``, connected to the driver.

    Raises
    ------
    ImportError
        If the package ``nvidia-ml-py`` is not installed.
    OSError
        If there is no NVIDIA driver, or NVML cannot talk to it.
    """
    try:
        import pynvml
    except ImportError:
        raise ImportError("GPUs are read through NVML; type `pip install nvidia-ml-py`") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise OSError(f"NVML cannot reach an NVIDIA driver: {error}") from None
    return pynvml


def read_gpus(nvml: Any = None) -> list[Gpu]:
    """Return the facts about each GPU of this machine.

    Parameters
    ----------
    nvml
        The module ``pynvml`` after ``nvmlInit()``. With None, `load_nvml` loads it, and its errors pass through.

    Raises
    ------
    OSError
        If a GPU does not answer, for example because it was lost.
    """
    nvml = load_nvml() if nvml is None else nvml
    try:
        return [_read(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]
    except nvml.NVMLError as error:
        raise OSError(f"a GPU does not answer: {error}") from None


def _read(nvml: Any, index: int) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)

    def ask(function: str, *arguments: Any, factor: float | None = None) -> Any:
        try:
            value = getattr(nvml, function)(handle, *arguments)
        except (nvml.NVMLError, AttributeError):  # consumer cards lack some counters, and old pynvml some functions
            return None
        return value if factor is None else value * factor

    memory, rates = ask("nvmlDeviceGetMemoryInfo"), ask("nvmlDeviceGetUtilizationRates")
    reasons = ask("nvmlDeviceGetCurrentClocksEventReasons") or 0
    slowed = {word: None for name, word in SLOWDOWNS.items() if reasons & getattr(nvml, name, 0)}
    return Gpu(
        index,
        str(nvml.nvmlDeviceGetName(handle)),
        str(nvml.nvmlSystemGetDriverVersion()),
        memory and memory.total,
        memory and memory.used,
        rates and rates.gpu / 100,
        ask("nvmlDeviceGetPowerUsage", factor=1e-3),
        ask("nvmlDeviceGetEnforcedPowerLimit", factor=1e-3),
        ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM, factor=1e6),
        ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM, factor=1e6),
        ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU, factor=1.0),
        tuple(slowed),
    )


class NvmlMeter:
    """A meter for the energy of one GPU, from the counter that NVML reads. Pass it to `tinybench.measure_energy`.

    The counter covers the whole board, whoever uses it, and counts since the driver was loaded. The driver updates the
    counter several times a second, so a reading should last for a second or more: pass ``min_reading=1``. Some GPUs
    sample their power for only a part of the time [1]_.

    Parameters
    ----------
    index
        Number of the GPU.
    nvml
        As in `read_gpus`.
    sync
        A function such as ``torch.cuda.synchronize``. Each reading first waits until the GPU has finished its work.

    Attributes
    ----------
    unit, measured, details
        ``"J"``, True, and the name of the GPU.
    most_watts
        No reading may show more; see `tinybench.support.footprint.energy_results.check_reading`.

    Raises
    ------
    ImportError, OSError
        See `load_nvml`; OSError also if the GPU has no such counter (GPUs before Volta).

    References
    ----------
    .. [1] Yang, Adámek and Armour, "Part-time power measurements: nvidia-smi's lack of attention", SC 2024.
    """

    unit = "J"
    measured = True

    def __init__(self, index: int = 0, nvml: Any = None, sync: Callable[[], Any] | None = None) -> None:
        self._nvml = load_nvml() if nvml is None else nvml
        self._handle, self._sync = self._nvml.nvmlDeviceGetHandleByIndex(index), sync
        gpu = _read(self._nvml, index)
        self.details: dict[str, Any] = {"meter": "NVML", "gpu": gpu.name, "driver": gpu.driver}
        self.most_watts = 2 * (gpu.most_watts or 1000.0)  # short peaks pass the limit
        try:
            self._start = self._millijoules()
        except self._nvml.NVMLError as error:
            raise OSError(f"GPU {index} ({gpu.name}) does not count its energy: {error}") from None

    def _millijoules(self) -> int:
        if self._sync:
            self._sync()
        return int(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle))

    def read(self) -> float:
        """Return the joules since the meter was made."""
        return (self._millijoules() - self._start) / 1e3
