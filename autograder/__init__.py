"""The teaching side of TinyBench: export, release, grade."""
