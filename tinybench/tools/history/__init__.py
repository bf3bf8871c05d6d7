"""Results by commit: what is kept of them, where they are kept, and what they show."""
