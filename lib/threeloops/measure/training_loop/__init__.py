"""The training loop, measured."""
