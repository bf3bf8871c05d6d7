"""The tools that check, export and release notebooks, and that build the students' packages."""
