"""The trip of a submission: collected, run in the sandbox, judged, written to the gradebook."""
