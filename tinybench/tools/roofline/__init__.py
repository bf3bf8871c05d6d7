"""What a machine can do at most, and what the operators of a graph make of it."""
