"""Grading past one machine: a scheduler of Dask's, and workers wherever there are cores.

cluster         the scheduler's workers, as the grader sees them
fitness         what a worker there must have
remote_grading  what is sent to it, and what is done with what comes back
cost            minutes that a class takes, from what was measured
"""
