"""Driving: what a vehicle's deadline leaves for a model."""
