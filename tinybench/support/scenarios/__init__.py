"""Scenarios of MLPerf, and the throughput of batches, for `tinybench.scenarios`."""
