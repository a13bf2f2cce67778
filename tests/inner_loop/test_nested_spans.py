"""What runs innermost on a thread, against looking at every moment."""

import random

import pytest

from threeloops.inner_loop.profiled import nested_spans
from threeloops.inner_loop.profiled.nested_spans import alone, innermost, rows_in_order
from threeloops.inner_loop.profiled.span_columns import Spans


def nested(rng: random.Random, start: int, end: int, depth: int = 0) -> list[tuple[int, int]]:
    """Calls within calls, at whole moments."""
    found, at = [], start
    while at < end and depth < 4:
        first = rng.randint(at, end)
        last = rng.randint(first, end)
        if last > first:
            found += [(first, last), *nested(rng, first, last, depth + 1)]
        at = max(last, at + 1)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_every_moment_belongs_to_the_call_that_began_last(seed) -> None:
    calls = nested(random.Random(seed), 0, 60)
    of_python, of_torch = Spans(), Spans()
    for number, (start, end) in enumerate(calls):
        (of_python if number % 2 else of_torch).add(float(start), float(end), number)
    seen = {}
    for start, end, name, own in innermost(rows_in_order(of_python), rows_in_order(of_torch), own=range(1, 99, 2)):
        for moment in range(int(start), int(end)):
            assert moment not in seen
            seen[moment] = name
            around = [number for number, (first, last) in enumerate(calls) if first <= start < last and number % 2]
            assert own < 0 if not around else calls[own] == calls[max(around)]
    for moment in range(60):
        running = [number for number, (start, end) in enumerate(calls) if start <= moment < end]
        assert (moment in seen) == bool(running)
        if running:
            assert calls[seen[moment]] == calls[max(running)]  # those within come later in the list
    together = Spans()
    for number, (start, end) in enumerate(calls):
        together.add(float(start), float(end), number)
    assert sum(seconds for _, _, seconds in alone(together)) == pytest.approx(len(seen))


def test_rows_come_in_order_whatever_the_order_of_the_column(monkeypatch) -> None:
    rng = random.Random(5)
    monkeypatch.setattr(nested_spans, "AT_ONCE", 7)
    rows = [(float(start), float(start + rng.randrange(1, 5)), place) for place, start in enumerate(range(0, 60, 2))]
    rows += [(start, end + 1, 40 + name) for start, end, name in rows]
    for given in (sorted(rows), rng.sample(rows, len(rows))):
        spans = Spans()
        for row in given:
            spans.add(*row)
        assert list(rows_in_order(spans)) == sorted(rows, key=lambda row: (row[0], -row[1]))
