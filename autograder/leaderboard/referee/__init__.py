"""Measuring entries beside the baseline."""
