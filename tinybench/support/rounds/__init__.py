"""Lesson 03: how a model is called, and fair rounds of measurement."""
