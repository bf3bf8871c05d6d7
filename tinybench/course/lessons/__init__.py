"""Helpers for the notebooks of single modules: toys with known results, simulations and figures."""
