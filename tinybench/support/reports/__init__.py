"""Support for lesson 10: the sections and pictures of a report."""
