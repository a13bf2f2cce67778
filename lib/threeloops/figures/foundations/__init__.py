"""Foundations, drawn."""
