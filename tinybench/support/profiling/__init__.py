"""Lesson 15: sampled stacks, and experiments on the benefit of a faster stage."""
