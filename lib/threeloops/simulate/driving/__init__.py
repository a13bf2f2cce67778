"""Driving, counted."""
