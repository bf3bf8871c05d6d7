"""Conditions of a measurement: facts about the machine, rules that check these facts, and notes stored with results."""
