"""Text, tables, pages, checks of arguments and fresh processes; imports nothing else of this library."""
