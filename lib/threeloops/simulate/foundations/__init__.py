"""Foundations, counted."""
