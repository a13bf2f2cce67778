"""The product loop, counted."""
