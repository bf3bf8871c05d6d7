"""Lesson 14: requests and batches of a load test."""
