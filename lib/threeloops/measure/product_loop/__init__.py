"""The product loop, measured."""
