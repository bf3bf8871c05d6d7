"""The check that a file is a safe and valid entry."""
