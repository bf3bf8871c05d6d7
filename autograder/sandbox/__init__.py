"""Where strangers' code runs: what confines it, what it sees, and how one talks to it."""
