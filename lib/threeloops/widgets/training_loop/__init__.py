"""The training loop, explored."""
