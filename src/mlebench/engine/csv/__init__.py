"""CSV: cells as pandas sees and prints them, and files too large for memory, block by block."""
