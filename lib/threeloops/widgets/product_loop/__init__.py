"""Explorers of chapter 3, the product loop."""
