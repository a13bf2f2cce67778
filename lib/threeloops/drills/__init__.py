"""Drills: ask, check, diagnose. Read the modules in this order.

answers    what a learner typed, as a number in base SI
drill      what a drill is: draw, prompt, answer, independent count, slips, derivation
judge      right, or which slip, or how far off
"""
