"""A gradual rollout between two real servers: traffic, evidence valid at every look, a journal, and the way back."""
