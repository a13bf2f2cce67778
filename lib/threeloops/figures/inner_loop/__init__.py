"""The inner loop, drawn."""
