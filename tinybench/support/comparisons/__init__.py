"""Lesson 07: two samples, warnings about a comparison, and the comparison in words."""
