"""Measurements with more and more workers, and the laws of scaling fitted to them."""
