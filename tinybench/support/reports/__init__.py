"""Support for lesson 10: the pieces and tables of a study, and the sections and pictures of a report."""
