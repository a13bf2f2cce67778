"""Drills on joint models and on the story that the three loops make together: tokens in a deadline, voxel grids, old
plans, repeated work, pictures as tokens, actions and worlds refined in steps, and who is credited with a speed-up.
"""

from threeloops.drills.engine.drill import Drill
from threeloops.drills.joint_models import actions, credit, windows, words

DRILLS: tuple[Drill, ...] = (*words.DRILLS, *windows.DRILLS, *actions.DRILLS, *credit.DRILLS)
