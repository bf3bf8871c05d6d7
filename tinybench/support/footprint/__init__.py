"""Lesson 05: what hides memory, what a meter can see, and memory stage by stage in a fresh process."""
