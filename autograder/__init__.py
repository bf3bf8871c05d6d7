"""The teaching side of TinyBench: export, release and grading of notebooks."""
