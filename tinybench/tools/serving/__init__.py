"""An HTTP server for a model: a front process takes requests, worker processes run the model. See `tinybench serve`."""
