"""Lesson 03: calls of a model, fair rounds of measurement, and measurements in fresh processes."""
