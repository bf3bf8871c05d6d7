"""The comparison of the submissions of a class by fingerprints of their syntax."""
