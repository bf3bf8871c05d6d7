"""Support for lesson 14: the requests and batches of a load test."""
