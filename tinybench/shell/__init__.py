"""For hands on a keyboard: the `tinybench` command, the `%bench` magic, and the quick comparison behind both."""
