"""A gradual rollout between two real servers: traffic, evidence valid at every checkpoint, a journal, and rollback."""
