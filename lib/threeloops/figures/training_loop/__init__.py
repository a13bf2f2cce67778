"""The training loop, drawn."""
