"""The grading of submissions. They are collected, run in the sandbox, judged, and entered into the gradebook."""
