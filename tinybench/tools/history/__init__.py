"""The history of benchmark results by commit: its entries, their storage, and the changes that they show."""
