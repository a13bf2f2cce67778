"""The training loop, counted."""
