"""A run that lasts: failures, saves and stragglers, and what it costs in days and dollars."""
