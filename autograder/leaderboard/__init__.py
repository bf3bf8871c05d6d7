"""The leaderboard (the Olympics). Students enter models, the referee measures each model, and web pages rank them."""
