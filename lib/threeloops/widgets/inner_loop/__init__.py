"""The inner loop, explored."""
