"""More workers: measured, and the laws fitted to them."""
