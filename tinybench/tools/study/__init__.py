"""Studies of what compression and number formats gain and cost for one model."""
