"""Count: brute force that knows nothing of the formulas. The folders are the loops; a simulator has the name of what
it plays.
"""
