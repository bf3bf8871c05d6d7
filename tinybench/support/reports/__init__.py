"""Lesson 10: the sections, pictures and pairwise tests of a report."""
