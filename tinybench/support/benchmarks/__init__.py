"""What `Benchmark` of module 08 uses: the runs of each metric, the facts of the machine, the rows of its table."""
