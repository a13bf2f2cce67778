"""Shares of one rank's time, against looking at every microsecond; what lasts no time is refused or left out."""

import random
from statistics import median

import pytest

from threeloops.inner_loop.profiled.rank_account import RankAccount, held_together, rank_account
from threeloops.inner_loop.profiled.rank_record import recorded

SPAN = 600  # microseconds
CATEGORIES = {
    "kernel": ("kernel", "nvjet_gemm"),
    "exchange": ("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"),
    "copy": ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)"),
    "loader": ("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
}
FIRST_OF = ("kernel", "exchange", "copy", "loader")  # what a moment counts for, if several run


def bars_of(rng: random.Random) -> list[tuple[str, int, int]]:
    """What runs, from when and how long; some of it no time at all."""
    bars = [
        (kind, rng.randrange(SPAN - 60), rng.randrange(60)) for kind in CATEGORIES for _ in range(rng.randrange(1, 9))
    ]
    return [*bars, ("kernel", 0, 5), ("kernel", SPAN - 5, 5)]


def account(bars: list[tuple[str, int, int]], *, rank: int = 0) -> RankAccount:
    events = []
    for kind, start, dur in bars:
        cat, name = CATEGORIES[kind]
        on = {"pid": 0, "tid": 7} if cat != "user_annotation" else {"pid": 9, "tid": 9}
        events.append({"ph": "X", "cat": cat, "name": name, "ts": start, "dur": dur, "args": {"device": 0}, **on})
    steps = ((step, SPAN * step / 4, SPAN / 4) for step in range(4))
    for step, start, dur in steps:
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": start, "dur": dur})
    first = min(events, key=lambda event: event["ts"])  # seconds are counted from the first event of a file
    events.remove(first)
    return rank_account(recorded([first, *events], name="t.json"), rank=rank)


@pytest.mark.parametrize("seed", range(12))
def test_shares_are_what_every_microsecond_says(seed) -> None:
    bars = bars_of(random.Random(seed))
    running = [{kind for kind, start, dur in bars if start <= at < start + dur} for at in range(SPAN)]
    spent = {kind: 0 for kind in (*FIRST_OF, "nothing")}
    for now in running:
        spent[next((kind for kind in FIRST_OF if kind in now), "nothing")] += 1
    found = account(bars)
    read = found.gauges
    assert read.busy * SPAN == pytest.approx(spent["kernel"])
    assert read.exposed_communication * SPAN == pytest.approx(spent["exchange"], abs=1e-6)
    assert read.exposed_copies * SPAN == pytest.approx(spent["copy"], abs=1e-6)
    assert read.loader_wait * SPAN == pytest.approx(spent["loader"], abs=1e-6)
    assert read.idle * SPAN == pytest.approx(SPAN - spent["kernel"], abs=1e-6)
    assert read.busy + sum(found.idle.values()) == pytest.approx(1)
    assert found.exchanges * SPAN == pytest.approx(sum("exchange" in now for now in running), abs=1e-6)
    assert found.copies * SPAN == pytest.approx(sum("copy" in now for now in running), abs=1e-6)
    lengths = [dur for kind, _, dur in bars if kind == "kernel"]
    assert found.by_family["matmuls"].kernels == len(lengths)
    assert found.by_family["matmuls"].seconds * 1e6 == pytest.approx(sum(lengths))
    assert found.median_kernel_s * 1e6 == pytest.approx(median(lengths))
    assert found.short_kernels == pytest.approx(sum(dur < 10 for dur in lengths) / len(lengths))
    still = sum(not now & {"kernel", "exchange", "copy"} for now in running)
    assert sum(one.seconds for one in found.pauses) * 1e6 == pytest.approx(still, abs=1e-6)
    for one in found.suspects:
        assert 0 <= one.share <= 1
        assert one.at_most is None or one.at_most >= 1


@pytest.mark.parametrize("seed", range(6))
def test_what_ranks_waited_is_part_of_what_they_exchanged(seed) -> None:
    """Exchanges of two ranks end together; the one that computes longer is waited for."""
    rng = random.Random(seed)
    bars: tuple[list[tuple[str, int, int]], ...] = ([], [])
    waits = [0, 0]
    for step in range(4):
        begun = [rng.randrange(10, 100), rng.randrange(10, 100)]
        end = max(begun) + 20
        for rank in range(2):
            bars[rank].extend([("kernel", 150 * step, begun[rank])])
            bars[rank].append(("exchange", 150 * step + begun[rank], end - begun[rank]))
            waits[rank] += end - begun[rank] - 20
    found, accounts = held_together([account(own, rank=rank) for rank, own in enumerate(bars)])
    assert [seconds * 1e6 for seconds in found.waited_s] == pytest.approx(waits, abs=1e-6)
    assert found.slowest == waits.index(min(waits))
    for rank, one in enumerate(accounts):
        told = {suspect.illness: suspect.share for suspect in one.suspects}
        share = waits[rank] / (one.gauges.span_s * 1e6) if rank != found.slowest else 0.0
        assert told.get("straggling rank", 0.0) == pytest.approx(share, abs=0.0101)  # below a hundredth nothing is said
        together = told.get("straggling rank", 0.0) + told.get("exposed communication", 0.0)
        assert together == pytest.approx(one.gauges.exposed_communication, abs=0.0201)


def events(cat: str, lengths: list[float]) -> list[dict]:
    return [{"ph": "X", "cat": cat, "name": "aten::mul", "ts": 10.0 * n, "dur": dur} for n, dur in enumerate(lengths)]


def test_what_lasts_no_time_is_said_in_a_sentence() -> None:
    for cat, what in (("kernel", "3 kernels"), ("cpu_op", "3 operators")):
        with pytest.raises(ValueError, match=rf"^t\.json has {what}, and none of them lasts: each ends when it begins"):
            rank_account(recorded(events(cat, [0.0] * 3), name="t.json"), rank=0)
        found = rank_account(recorded(events(cat, [0.0, 4.0, 0.0]), name="t.json"), rank=0)
        assert found.gauges.busy == pytest.approx(4 / 20)
    for dur in (-1.0, float("nan")):
        with pytest.raises(ValueError, match=r"event 1 is none that torch's profiler writes .*it lasts"):
            recorded(events("kernel", [dur]), name="t.json")
