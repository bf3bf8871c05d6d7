"""Support for lessons 05 and 06: memory that measurements miss, memory by stage, and the energy counters."""
