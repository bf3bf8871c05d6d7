"""Looks at what runs: when, the stacks seen, and their pictures and files."""
