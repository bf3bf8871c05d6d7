"""Support for lesson 05: memory that measurements miss, the error of memory counts, and memory use by stage."""
