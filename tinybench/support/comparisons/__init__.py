"""Lesson 07: tests for two samples, warnings about a comparison, and the comparison in words."""
