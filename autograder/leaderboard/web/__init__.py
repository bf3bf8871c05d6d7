"""The web server of the leaderboard: pages, the API, uploads."""
