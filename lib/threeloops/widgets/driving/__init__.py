"""Explorers of chapter 4."""
