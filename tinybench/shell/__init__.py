"""The interactive tools: the `tinybench` command, the `%bench` magic, and the latency comparison that both use."""
