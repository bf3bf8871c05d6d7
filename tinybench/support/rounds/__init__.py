"""Support for lesson 03: calls of a model, rounds that treat all models alike, and measurements in fresh processes."""
