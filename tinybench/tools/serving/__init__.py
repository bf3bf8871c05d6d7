"""An HTTP server for a model (`tinybench serve`). A front process accepts requests; worker processes run the model."""
