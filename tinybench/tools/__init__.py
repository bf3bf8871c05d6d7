"""What engineers get in addition to the lessons: a model in use, and questions about measurements."""
