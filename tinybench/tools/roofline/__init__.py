"""The roofline of a machine: its maximum rates, and a comparison of a graph's operators with these rates."""
