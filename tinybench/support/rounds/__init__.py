"""Lesson 03: how a model is called, fair rounds of measurement, and measurements in fresh processes."""
