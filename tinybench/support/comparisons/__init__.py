"""Support for lesson 07: tests for two samples, warnings about a comparison, and texts that describe the result."""
