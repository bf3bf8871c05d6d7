"""Tools for engineers that go beyond the lessons: models in production, and the analysis of measurements."""
