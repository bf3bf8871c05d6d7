"""Lesson 05: memory that measurements miss, the resolution of memory counts, and memory by stage in a new process."""
