"""Conditions of a measurement: facts about the machine, rules on them, and the notes stored with every result."""
