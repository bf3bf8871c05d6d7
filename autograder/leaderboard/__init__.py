"""The Olympics, a leaderboard: students enter models, the referee measures each one, and web pages rank them."""
