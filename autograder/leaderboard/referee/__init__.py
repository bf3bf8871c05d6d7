"""The measurement of entries alongside the baseline."""
