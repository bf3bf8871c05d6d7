"""What compression and number formats bring for one model."""
