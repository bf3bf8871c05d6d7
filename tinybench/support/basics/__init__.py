"""Text, tables, pages, arrays and checks of arguments: code that imports nothing else of this library."""
