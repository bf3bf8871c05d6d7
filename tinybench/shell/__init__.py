"""The interactive tools: the `tinybench` command, the `%bench` magic, and the quick comparison behind both."""
