"""The grading of submissions: collect them, run them in the sandbox, judge them, and write the gradebook."""
