"""Support for lesson 09: the values by which models are ranked, limits, scores and resampling."""
