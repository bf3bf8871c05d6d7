"""NVIDIA GPUs: facts and energy from NVML, the driver's management library, and time from the GPU's own events."""
