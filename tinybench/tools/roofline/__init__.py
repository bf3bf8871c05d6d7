"""The roofline of a machine: its maximum rates, and the operators of a graph compared with them."""
