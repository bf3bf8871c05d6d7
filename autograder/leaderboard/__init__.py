"""The Olympics: students enter models, the referee measures them itself, pages rank them."""
