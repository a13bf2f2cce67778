"""Thirteen open cases: a sentence from the interviewer, what to ask, estimates, a design, a choice, follow-ups.

case            what an open case is
one_gpu         one GPU
training, fine_tuning, tuesday          training, and a job that became slow
serving, fleet, completions, benchmark  servers
driving, sharing, messages              cars
"""

from threeloops.room.kinds.cases.benchmark import BENCHMARK
from threeloops.room.kinds.cases.case import idea
from threeloops.room.kinds.cases.completions import CODER
from threeloops.room.kinds.cases.driving import RECORDER, STACK_CASE
from threeloops.room.kinds.cases.fine_tuning import TUNING
from threeloops.room.kinds.cases.fleet import FLEET
from threeloops.room.kinds.cases.messages import MESSAGE
from threeloops.room.kinds.cases.one_gpu import BUSY, SMALL
from threeloops.room.kinds.cases.serving import SEVENTY
from threeloops.room.kinds.cases.sharing import THREE
from threeloops.room.kinds.cases.training import LARGE
from threeloops.room.kinds.cases.tuesday import TUESDAY

CASES = {
    case.key: case
    for case in (
        SEVENTY,
        LARGE,
        TUESDAY,
        STACK_CASE,
        FLEET,
        TUNING,
        BUSY,
        SMALL,
        CODER,
        RECORDER,
        BENCHMARK,
        THREE,
        MESSAGE,
    )
}
IDEAS = tuple(map(idea, CASES.values()))
