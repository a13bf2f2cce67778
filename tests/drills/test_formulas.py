"""What is graded stands in the library: the answer of every idea calls one of its formulas."""

from tests.each import each

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Drill, seeded
from threeloops.drills.engine.trial import called


@each("drill", DRILLS, by=lambda drill: drill.family)
def test_the_answer_calls_a_formula_of_the_library(drill: Drill) -> None:
    assert called(drill, drill.draw(seeded("test", "0", drill.key))), f"{drill.key} computes its answer by itself"
