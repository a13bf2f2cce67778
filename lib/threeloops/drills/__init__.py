"""Drills: ask, check, diagnose. One folder a family, with the name of its graded set; what all of them share stands
in engine/. A family that has a graded set asks for functions too: its functions.py. One graded set has no
family: first_steps takes a question from each of five.
"""
