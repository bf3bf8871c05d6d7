"""The check of whether a file is a safe and valid entry."""
