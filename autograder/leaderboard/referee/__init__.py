"""Measuring entries next to the baseline."""
