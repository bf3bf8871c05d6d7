"""Measurements of how throughput scales with the number of workers, and the laws fitted to these measurements."""
