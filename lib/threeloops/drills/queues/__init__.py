"""Drills on waiting: in flight, in line, in one line for several servers; the slow ones; too much load."""

from threeloops.drills.engine.drill import Drill
from threeloops.drills.queues import overload, pools, tails, tenancy, waits

DRILLS: tuple[Drill, ...] = (*waits.DRILLS, *pools.DRILLS, *tails.DRILLS, *overload.DRILLS, *tenancy.DRILLS)
