"""The inner loop, measured."""
