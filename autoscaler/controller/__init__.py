"""The loop and its eight steps."""
