"""Helpers for the notebooks of individual modules: test objects with known results, simulations and figures."""
