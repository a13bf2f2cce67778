"""Driving, measured: real code on this machine."""
