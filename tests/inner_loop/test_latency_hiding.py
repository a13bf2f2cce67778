"""Latency hiding: the formula against a scheduler that is played cycle by cycle and does not know it."""

import pytest

from threeloops.inner_loop import latency_hiding
from threeloops.inner_loop.latency_hiding import Turn
from threeloops.simulate.inner_loop import warp_scheduler

TURNS = [(1, 9, 400), (4, 36, 400), (2, 7, 233), (8, 0, 150), (1, 1, 17), (3, 50, 700)]


@pytest.mark.parametrize(("loads", "instructions", "latency"), TURNS)
@pytest.mark.parametrize("warps", [1, 2, 3, 7, 16, 40])
def test_a_greedy_scheduler_issues_the_predicted_share(loads: int, instructions: int, latency: int, warps: int) -> None:
    turn = Turn(loads=loads, instructions=instructions, latency_cycles=latency)
    played = warp_scheduler.play(
        warps=warps, turns=10, loads=loads, instructions=instructions, latency_cycles=latency, policy="greedy"
    )
    assert played.issue_share(skip_turns=5) == pytest.approx(latency_hiding.issue_share(turn, warps=warps), rel=1e-12)


@pytest.mark.parametrize(("loads", "instructions", "latency"), TURNS)
def test_one_warp_less_than_enough_leaves_stalls_and_enough_leaves_none(
    loads: int, instructions: int, latency: int
) -> None:
    enough = latency_hiding.warps_to_hide(Turn(loads=loads, instructions=instructions, latency_cycles=latency))

    def share(warps: int) -> float:
        played = warp_scheduler.play(
            warps=warps, turns=10, loads=loads, instructions=instructions, latency_cycles=latency, policy="greedy"
        )
        return played.issue_share(skip_turns=5)

    assert share(enough) == 1
    assert enough == 1 or share(enough - 1) < 1


def test_a_fair_scheduler_marches_its_warps_into_the_wait_together() -> None:
    """All 16 calculate in step, 16 × 80 cycles, and then wait in step: W b / (W b + L - 1), which the formula does
    not promise.
    """
    played = warp_scheduler.play(warps=16, turns=12, loads=8, instructions=72, latency_cycles=700, policy="fair")
    greedy = warp_scheduler.play(warps=16, turns=12, loads=8, instructions=72, latency_cycles=700, policy="greedy")
    assert played.issue_share(skip_turns=6) == pytest.approx(16 * 80 / (16 * 80 + 700), rel=0.02)
    assert greedy.issue_share(skip_turns=6) == 1


@pytest.mark.parametrize("warps", [1, 8, 16, 24, 48])
@pytest.mark.parametrize("policy", warp_scheduler.POLICIES)
def test_what_is_in_flight_is_rate_times_latency(warps: int, policy: str) -> None:
    """Little's law, with both sides counted: the memory is full from about 20 warps on, and the requests then wait in
    a queue.
    """
    played = warp_scheduler.play(
        warps=warps, turns=40, loads=1, instructions=1, latency_cycles=400, policy=policy, cycles_per_request=20
    )
    start, end = played.turn_starts[20], played.turn_starts[-1]
    waited = [back - sent for sent, back in played.requests if start <= sent < end]
    mean_latency = sum(waited) / len(waited)
    assert played.in_flight(skip_turns=20) == pytest.approx(
        played.requests_per_cycle(skip_turns=20) * mean_latency, rel=0.02
    )
    assert (mean_latency > 400) == (warps > 20)
    assert played.requests_per_cycle(skip_turns=20) <= 1 / 20 + 1e-12


def test_every_warp_does_all_its_work() -> None:
    played = warp_scheduler.play(warps=5, turns=3, loads=2, instructions=4, latency_cycles=30, policy="fair")
    assert played.issued == 5 * 3 * (2 + 4)
    assert [played.issuers.count(warp) for warp in range(5)] == [3 * (2 + 4)] * 5
    assert len(played.requests) == 5 * 3 * 2
    assert played.issued + played.stalls == played.cycles


def test_bandwidth_reached_grows_with_what_is_in_flight_until_the_roof() -> None:
    def reached(warps: int) -> float:
        return latency_hiding.reached_bytes_per_s(
            in_flight_bytes=128.0 * warps, latency_s=400, roof_bytes_per_s=128 / 20
        )

    for warps in (1, 8, 16, 24, 48):  # a request of 128 bytes per warp, one second per cycle
        played = warp_scheduler.play(
            warps=warps, turns=40, loads=1, instructions=1, latency_cycles=400, policy="greedy", cycles_per_request=20
        )
        assert reached(warps) == pytest.approx(128 * played.requests_per_cycle(skip_turns=20), rel=0.01)


def test_double_rate_or_double_wait_doubles_what_is_in_flight() -> None:
    once = latency_hiding.bytes_in_flight(memory_bytes_per_s=3.35e12, latency_s=350e-9)
    assert latency_hiding.bytes_in_flight(memory_bytes_per_s=6.7e12, latency_s=350e-9) == pytest.approx(2 * once)
    assert latency_hiding.bytes_in_flight(memory_bytes_per_s=3.35e12, latency_s=700e-9) == pytest.approx(2 * once)
    assert latency_hiding.latency_s(cycles=700, clock_hz=2e9) == pytest.approx(350e-9)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="loads=0"):
        Turn(loads=0, instructions=4, latency_cycles=10)
    with pytest.raises(ValueError, match="warps=0"):
        latency_hiding.issue_share(Turn(loads=1, instructions=0, latency_cycles=10), warps=0)
    with pytest.raises(ValueError, match="latency_s=0"):
        latency_hiding.bytes_in_flight(memory_bytes_per_s=1.0, latency_s=0)
    with pytest.raises(ValueError, match="policy='just' is not known"):
        warp_scheduler.play(warps=1, turns=1, loads=1, instructions=1, latency_cycles=1, policy="just")
