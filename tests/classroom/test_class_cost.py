"""Minutes that a class takes: the formula against a count, and the teacher's page against the measurement."""

import heapq
from pathlib import Path

import pytest

from threeloops.classroom.machines import cost
from threeloops.classroom.machines.cost import Way

ROOT = Path(__file__).parents[2]


def counted(way: Way, submissions: int, cores: int) -> float:
    """One by one: the core that is free first takes the next; what is done waits for whoever enters it."""
    free, entered = [way.start_s] * cores, way.start_s
    done = []
    for _ in range(submissions):
        end = heapq.heappop(free) + way.submission_s
        heapq.heappush(free, end)
        done.append(end)
    for end in sorted(done):
        entered = max(entered, end) + way.entering_s
    return entered


@pytest.mark.parametrize("cores", [1, 2, 7, 32, 128, 500])
@pytest.mark.parametrize("entering_s", [0.0, 0.004, 0.02, 0.3])
@pytest.mark.parametrize("submissions", [1, 3, 300, 1_001])
def test_the_formula_says_what_is_counted(submissions: int, cores: int, entering_s: float) -> None:
    way = Way(start_s=3.0, submission_s=0.31, entering_s=entering_s)
    assert cost.wall_s(way, submissions=submissions, cores=cores) == pytest.approx(counted(way, submissions, cores))


def test_the_teachers_page_shows_what_was_measured() -> None:
    page, record = (ROOT / "TEACHING.md").read_text(encoding="utf-8"), cost.measured()
    assert cost.page(record) in page
    minutes = counted(record.there, cost.CLASSES[1], cost.THERE[0]) / 60
    assert f"| {cost.CLASSES[1]:,} | {cost.THERE[0]} | several machines, `--workers tcp://…` | {minutes:.1f} |" in page


def test_a_class_of_nobody_is_refused() -> None:
    with pytest.raises(ValueError, match="submissions=0 must be a whole number"):
        cost.wall_s(Way(start_s=0, submission_s=1, entering_s=0), submissions=0, cores=1)
