"""Driving, drawn."""
