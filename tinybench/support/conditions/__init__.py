"""What a machine is like to measure on: facts, rules, and the notes that every result carries."""
