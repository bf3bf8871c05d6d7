"""Measurements of how the throughput scales with the number of workers, and the laws fitted to them."""
