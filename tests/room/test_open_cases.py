"""Open cases: their figures are judged like a table's, the decision follows from them, and the rubric waits until after
the answer.
"""

import pytest
from tests.room.test_tables import line
from tests.seeds import seeds

from threeloops.room import ideas
from threeloops.room.kinds.open_case import Case, pose
from threeloops.room.kinds.open_cases import CASES
from threeloops.room.kinds.table import Cell, Word, draw_of
from threeloops.room.plan import LONGEST_S, Wish, questions

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.table.key)


@every_case
def test_the_right_line_is_right_and_a_mistake_in_any_cell_is_named(case: Case) -> None:
    for seed in map(str, seeds(100)):
        p, asked = draw_of(case.table, seed), pose(case, seed)
        written = line(case.table, p)
        assert asked.judge("; ".join(written)).right, seed
        for place, cell in enumerate(case.table.cells):
            if isinstance(cell, Cell):
                q = cell.numbers(p)
                mistakes = [s for s in cell.drill.slips if s.wrong(q) != pytest.approx(cell.drill.derive(q).value)]
                for slip in mistakes:
                    wrong = [*written]
                    wrong[place] = f"{float(slip.wrong(q))!r} {cell.drill.unit}".strip()
                    assert not asked.judge("; ".join(wrong)).right, (cell.name, slip.key, seed)


@every_case
def test_the_decision_goes_either_way(case: Case) -> None:
    for cell in case.table.cells:
        if isinstance(cell, Word):
            assert {cell.right(draw_of(case.table, str(seed))) for seed in range(200)} == set(cell.words)


@every_case
def test_every_step_has_its_words_and_the_rubric_comes_after_the_answer(case: Case) -> None:
    asked = pose(case, "1")
    assert len(case.rubric) >= 5
    assert len(case.table.cells) >= 5
    for row in case.rubric:
        assert row in asked.working
        assert row not in asked.text + "".join(asked.hints)
    for cell in case.table.cells:
        assert cell.name in asked.text


@every_case
def test_a_figure_of_the_brief_that_a_step_needs_stands_in_the_brief(case: Case) -> None:
    """Another draw of the same case has other figures, and so another brief."""
    briefs = {case.table.prompt(draw_of(case.table, str(seed))) for seed in range(40)}
    answers = {tuple(line(case.table, draw_of(case.table, str(seed)))) for seed in range(40)}
    assert len(briefs) >= len(answers) - 1


def test_a_case_is_asked_by_name_and_not_between_two_minute_questions(tmp_path) -> None:  # type: ignore[no-untyped-def]
    import datetime as dt

    from threeloops.room.history import History

    history, now = History(tmp_path / "history.sqlite3"), dt.datetime.now(dt.UTC)
    long = {key for key, idea in ideas.IDEAS.items() if idea.target_s > LONGEST_S}
    assert {case.table.key for case in CASES} <= long
    for mode in ("sprint", "mock"):
        for seed in range(20):
            asked = questions(mode, Wish(), history, seed=str(seed), now=now)
            assert not long & {ask.idea for ask in asked}
    named = questions("sprint", Wish(topic="open_cases"), history, seed="1", now=now)
    assert {ask.idea for ask in named} == {case.table.key for case in CASES}
    assert {ask.kind for ask in named} == {"case"}
