"""Helpers for text, tables, pages, arrays and argument checks. They import nothing else of this library."""
