"""A model behind HTTP: a front process takes requests, worker processes hold the model. `tinybench serve` starts it."""
