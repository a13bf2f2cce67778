"""Notebooks whose grade is known beforehand: empty, right throughout, and wrong in every way that the drills can
name.
"""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from submissions import (
    ROOT,
    SETS,
    asked,
    few_draws,
    filled,
    maximum,
    released,
    signed,
    slipped_function,
    solution,
    write,
    written_number,
)

from threeloops.classroom import one_submission
from threeloops.classroom.course import Course
from threeloops.classroom.intake import handed_in
from threeloops.classroom.questions import source
from threeloops.classroom.report import Result
from threeloops.contents import STARTER
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.student_draws import posed
from threeloops.room.ideas import FIRST

CODE = "spring-26"
WITHOUT_A_MODEL = {"queues"}  # a queue knows arrivals and service times, whatever stands behind it
HOLDS = {  # numbers and functions, where a set is of another kind than the rest
    STARTER: (5, 0),  # for whoever is new: nothing to write
    "coding": (4, 5),  # four things to write: each asked as a number first, one of them two functions
}
OF_SEVERAL = {  # a set without a family of its own -> whose ideas it asks
    "co_running": {"deadlines", "driving_silicon", "joint_models", "latency_budget"},
}


def slips(name: str, grade_id: str) -> list[str]:
    return [slip.key for slip in DRILLS[asked(name)[grade_id].drill].slips]


def slip_plan(name: str) -> dict[str, dict[str, str]]:
    """student -> {question: slip made there}. Every slip of every question once; neighbours are right, so that nobody
    pays for another's slip.
    """
    plan: dict[str, dict[str, str]] = {}
    for (position, grade_id), turn in itertools.product(enumerate(asked(name)), (0, 1)):
        for number, key in enumerate(slips(name, grade_id)):
            if position % 2 == turn:
                plan.setdefault(f"slips-{turn}-{number}", {})[grade_id] = key
    return plan


def slipped(name: str, student: str, made: dict[str, str]) -> dict[str, str]:
    """Answer cells that make these slips."""
    cells = {}
    for grade_id, key in made.items():
        one = asked(name)[grade_id]
        if one.kind == "function":
            cells[grade_id] = slipped_function(one, key)
        else:
            (slip,) = [slip for slip in DRILLS[one.drill].slips if slip.key == key]
            value = slip.wrong(posed(DRILLS[one.drill], course=CODE, student=student))
            cells[grade_id] = f"{one.name} = {written_number(one.drill, float(value))!r}"
    return cells


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Result]]:
    """For a set, student -> what came of it: everything handed in and graded once, through nbgrader."""
    done: dict[str, dict[str, Result]] = {}

    def of(name: str) -> dict[str, Result]:
        if name not in done:
            with few_draws():
                done[name] = everything_handed_in(name, tmp_path_factory.mktemp(name))
        return done[name]

    return of


def everything_handed_in(name: str, folder: Path) -> dict[str, Result]:
    """The empty notebook, the reference and every slip of one set, graded."""
    course = Course(root=ROOT, work=folder / "work", code=CODE)
    write(signed(released(name), student="empty", course=CODE), folder / "class", "empty", name)
    write(filled(name, student="reference", course=CODE), folder / "class", "reference", name)
    for student, made in slip_plan(name).items():
        write(
            filled(name, student=student, course=CODE, wrong=slipped(name, student, made)),
            folder / "class",
            student,
            name,
        )
    found = handed_in(folder / "class", course.sets())
    assert found.name == name
    course.prepare(name)
    return {submission.student: one_submission.one(course, name, submission) for submission in found.submissions}


every_set = pytest.mark.parametrize("name", SETS)


@every_set
def test_the_empty_notebook_earns_nothing(graded: Callable[[str], dict[str, Result]], name: str) -> None:
    empty = graded(name)["empty"]
    assert (empty.status, empty.points, empty.maximum) == ("graded", 0, maximum(name))
    assert {answer.status for answer in empty.answers} == {"unanswered"}


@every_set
def test_the_reference_earns_everything(graded: Callable[[str], dict[str, Result]], name: str) -> None:
    reference = graded(name)["reference"]
    assert (reference.status, reference.points) == ("graded", maximum(name)), [
        answer for answer in reference.answers if answer.status != "right"
    ]
    assert reference.notes == ()


@every_set
def test_every_slip_costs_its_own_question_and_is_named(graded: Callable[[str], dict[str, Result]], name: str) -> None:
    seen = set()
    for student, made in slip_plan(name).items():
        one = graded(name)[student]
        assert one.status == "graded"
        for answer in one.answers:
            if answer.grade_id in made:
                assert answer.points == 0, (student, answer)
                assert answer.slips == (made[answer.grade_id],), (student, answer)
                seen.add((answer.grade_id, answer.slips[0]))
            else:
                assert answer.points == answer.maximum, (student, answer)
    assert seen == {(grade_id, key) for grade_id in asked(name) for key in slips(name, grade_id)}


@every_set
def test_what_a_set_holds(name: str) -> None:
    kinds = [one.kind for one in asked(name).values()]
    numbers, functions = HOLDS.get(name, (6, 3))  # five numbers, and one on a real model's config
    assert kinds.count("number") >= numbers
    assert kinds.count("function") == functions
    assert len({one.drill for one in asked(name).values()}) == len(kinds), "one drill, asked twice"
    if name != STARTER:
        assert {DRILLS[one.drill].family for one in asked(name).values()} == OF_SEVERAL.get(name, {name})
    if name not in WITHOUT_A_MODEL | {STARTER}:
        assert [cell["id"] for cell in solution(name)["cells"] if "real-config" in cell["id"]], (
            "no question on a real model's config"
        )


def test_the_first_set_asks_one_simple_question_of_each_of_five_families() -> None:
    drills = [DRILLS[one.drill] for one in asked(STARTER).values()]
    assert tuple(drill.key for drill in drills) == FIRST, "the room asks the same under this name"
    assert len({drill.family for drill in drills}) == len(drills) == 5
    assert {drill.loop for drill in drills} == {"inner", "training", "product", "driving"}
    assert max(drill.target_s for drill in drills) <= 75
    assert not [drill.key for drill in drills if drill.prerequisites]


def test_four_questions_of_the_first_set_come_back_in_larger_ones() -> None:
    others = {one.drill for name in SETS if name != STARTER for one in asked(name).values()}
    assert [one.drill in others for one in asked(STARTER).values()] == [True] * 4 + [False]
    (told,) = [source(cell) for cell in released(STARTER)["cells"] if cell["id"] == "your-grade"]
    assert "first four questions come back in larger sets" in told
    assert f"book.py grade my/drills/{STARTER}`" in told


def test_two_numbers_of_the_set_on_one_chip_stand_in_the_set_on_deadlines() -> None:
    """As TEACHING.md says; all its other questions no set has asked."""
    mine = {one.drill for one in asked("co_running").values()}
    others = {one.drill for name in SETS if name != "co_running" for one in asked(name).values()}
    assert mine & others == {"deadlines-non-preemptive", "deadlines-blocking"}
    assert mine & others < {one.drill for one in asked("deadlines").values()}
    assert "So do two of the seven numbers of `co_running`" in (ROOT / "TEACHING.md").read_text(encoding="utf-8")
