"""What is graded stands in the library: the answer of every idea calls one of its formulas."""

import sys
from types import FrameType

from tests.each import each

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Drill, seeded

ROOMS = ("operations", "models", "foundations", "inner_loop", "training_loop", "product_loop", "driving")
READS = "threeloops.models.catalogue"  # looks a model up, and computes nothing


def called(drill: Drill) -> set[str]:
    """The library's formulas that the answer of one draw is computed with."""
    p, found = drill.draw(seeded("test", "0", drill.key)), set[str]()

    def noted(frame: FrameType, event: str, argument: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module != READS and module.split(".")[1:2] and module.split(".")[1] in ROOMS:
            found.add(f"{module}.{frame.f_code.co_name}")

    before = sys.getprofile()
    sys.setprofile(noted)
    try:
        drill.derive(p)
    finally:
        sys.setprofile(before)
    return found


@each("drill", DRILLS, by=lambda drill: drill.family)
def test_the_answer_calls_a_formula_of_the_library(drill: Drill) -> None:
    assert called(drill), f"{drill.key} computes its answer by itself"
