"""The inner loop, counted."""
