"""The database: students, entries, jobs."""
