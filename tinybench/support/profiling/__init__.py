"""Lesson 15: sampled stacks, and experiments on what a faster stage would bring."""
