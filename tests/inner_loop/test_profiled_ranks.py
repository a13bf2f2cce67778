"""Ranks of one run: who is waited for, against arrivals that are known."""

import random

import pytest
from tests.inner_loop.kineto_form import Run

from threeloops.inner_loop.profiled.rank_account import held_together, rank_account
from threeloops.inner_loop.profiled.rank_record import read_record
from threeloops.inner_loop.profiled.rank_waits import rank_waits, waited_s


def arrivals(rng: random.Random, ranks: int) -> tuple[list[float], list[float]]:
    """An exchange whose ranks arrive one by one: how long it is on each, and what each waited until all were there."""
    at = [rng.uniform(0, 10) for _ in range(ranks)]
    sending = rng.uniform(1, 2)
    done = max(at) + sending
    return [done - one for one in at], [max(at) - one for one in at]


def test_lengths_say_what_was_waited() -> None:
    rng = random.Random(5)
    for ranks in (2, 3, 8):
        lengths, waits = arrivals(rng, ranks)
        assert waited_s(lengths) == pytest.approx(waits, abs=1e-9)


def run_of_ranks(tmp_path, *, ranks: int, slow: int, since: int, steps: int = 6, clocks: float = 0.0) -> list:
    """A step computes 1 ms, of which the slow rank needs 0.6 ms more from a step on; then all add their gradients."""
    runs = [Run(rank=rank) for rank in range(ranks)]
    for rank, run in enumerate(runs):
        run.at += clocks * rank  # nobody's clock agrees with another's
    for step in range(1, steps + 1):
        ends = [
            run.launch("nvjet_tst_128x256", 1600 if rank == slow and step >= since else 1000, op="aten::mm")
            for rank, run in enumerate(runs)
        ]
        asked = [end - clocks * rank for rank, end in enumerate(ends)]
        for rank, run in enumerate(runs):
            run.exchange(max(asked) - asked[rank] + 100, after=ends[rank])
            run.wait("cudaDeviceSynchronize")
            run.step(step)
    return [read_record(str(run.write(tmp_path / f"rank{rank}.json"))) for rank, run in enumerate(runs)]


@pytest.mark.parametrize(("ranks", "slow", "since"), [(2, 1, 4), (3, 0, 2), (4, 2, 1)])
def test_the_slowest_rank_and_since_when(tmp_path, ranks, slow, since) -> None:
    records = run_of_ranks(tmp_path, ranks=ranks, slow=slow, since=since, clocks=123_456.0)
    found = rank_waits(records)
    assert (found.slowest, found.since, found.matched, found.unmatched) == (slow, str(since), 6, 0)
    waited = 600e-6 * (6 - since + 1)
    assert found.waited_s == pytest.approx([0 if rank == slow else waited for rank in range(ranks)], abs=1e-8)
    waits, accounts = held_together([rank_account(one, rank=one.rank) for one in records])
    other = next(one for one in accounts if one.rank != slow)
    assert other.suspects[0].illness == "straggling rank"
    assert other.suspects[0].share == pytest.approx(waited / other.gauges.span_s, rel=0.02)
    assert f"rank {slow}, slowest in every step since step {since}" in other.suspects[0].because
    own = next(one for one in accounts if one.rank == slow)
    assert "straggling rank" not in [one.illness for one in own.suspects]
    assert waits.lag == pytest.approx(other.suspects[0].share, rel=0.02)


def test_ranks_that_are_alike_have_no_slowest_since(tmp_path) -> None:
    found = rank_waits(run_of_ranks(tmp_path, ranks=3, slow=1, since=99))
    assert found.since == ""
    assert found.lag == pytest.approx(0, abs=1e-9)


def test_exchanges_that_do_not_match_decide_nothing(tmp_path) -> None:
    records = run_of_ranks(tmp_path, ranks=2, slow=1, since=1)
    more = run_of_ranks(tmp_path, ranks=2, slow=1, since=1, steps=7)
    assert rank_waits([records[0], more[1]]) is None
    with pytest.raises(ValueError, match="two files are of one rank"):
        rank_waits([records[0], records[0]])


def test_groups_that_a_file_names_are_kept_apart(tmp_path) -> None:
    records = run_of_ranks(tmp_path, ranks=4, slow=2, since=1)
    for record, pair in zip(records, ("0, 1", "0, 1", "2, 3", "2, 3"), strict=True):
        record.names.append(f"tp [{pair}]")
        exchanges = record.devices["0"].exchanges
        for place in range(len(exchanges)):
            exchanges.link[place] = len(record.names) - 1
    found = rank_waits(records)
    assert found.waited_s == pytest.approx([0, 0, 0, 3600e-6], abs=1e-8)  # ranks 0 and 1 wait alike, for rank 2
