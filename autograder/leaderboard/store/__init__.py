"""The database of the leaderboard: students, entries, jobs."""
