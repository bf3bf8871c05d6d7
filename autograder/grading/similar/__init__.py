"""Similar submissions of one class: fingerprints of their syntax, and how alike two of them are."""
