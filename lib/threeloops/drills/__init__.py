"""Drills: ask, check, diagnose. One folder a family, with the name of its graded set; what all of them share stands
in engine/. A family that has a graded set asks for functions too: its functions.py. Two graded sets have no
family: first_steps takes a question from each of five, co_running what four of them say of networks on one chip.
"""
