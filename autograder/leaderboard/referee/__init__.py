"""The measurement of entries alongside the baseline, the network with which every entry is compared."""
