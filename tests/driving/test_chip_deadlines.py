"""Networks that come again and share a GPU: who is late, block by block, against response times by formula."""

import math

import pytest

from threeloops.driving import response_time
from threeloops.driving.response_time import Task
from threeloops.simulate.driving import chip_deadlines
from threeloops.simulate.driving.chip_deadlines import Recurring
from threeloops.simulate.driving.chip_sharing import Kernel

SMS = 14
TASKS = {"control": Task(cost=3, period=10), "perception": Task(cost=12, period=33), "map": Task(cost=10, period=50)}
UNTIL = math.lcm(*(task.period for task in TASKS.values()))  # milliseconds, until all are launched together again


def networks(per_ms: int, *, block: int) -> list[Recurring]:
    """The tasks as networks that take a whole chip for their cost, in blocks of so many slices."""
    return [
        Recurring(
            name=name,
            kernels=(Kernel(blocks=task.cost * per_ms * SMS // block, work_slices=block),),
            period=task.period * per_ms,
            priority=-rank,
        )
        for rank, (name, task) in enumerate(TASKS.items())
    ]


def longest(taken: dict[str, list[int]], per_ms: int) -> dict[str, float]:
    return {name: max(slices) / per_ms for name, slices in taken.items()}


def test_priorities_over_short_blocks_are_a_core_with_preemption() -> None:
    """The formula of Joseph and Pandya knows nothing of blocks; in slices of 1 ms they change no response."""
    every = list(TASKS.values())
    told = {
        name: response_time.response_time(task, above=every[:rank]) for rank, (name, task) in enumerate(TASKS.items())
    }
    for per_ms in (1, 4):
        three = networks(per_ms, block=1)
        taken = chip_deadlines.responses(three, until=UNTIL * per_ms, sms=SMS, rule="priority")
        assert longest(taken, per_ms) == told
        assert not any(chip_deadlines.late(three, taken).values())


def test_plain_streams_let_control_wait_for_whole_kernels() -> None:
    three = networks(4, block=2)
    taken = chip_deadlines.responses(three, until=4 * UNTIL, sms=SMS, rule="streams")
    assert chip_deadlines.late(three, taken)["control"] > 0
    assert longest(taken, 4)["control"] > TASKS["control"].cost + TASKS["perception"].cost


def test_own_sms_make_each_a_smaller_chip_of_its_own() -> None:
    own = {"control": 5, "perception": 6, "map": 3}
    for name, taken in chip_deadlines.responses(
        networks(10, block=1), until=10 * UNTIL, sms=SMS, rule="own", own=own
    ).items():
        assert set(taken) == {-(-TASKS[name].cost * 10 * SMS // own[name])}


def test_a_device_of_a_seventh_has_a_seventh_of_everything() -> None:
    three = networks(4, block=2)
    pieces = {"control": 3, "perception": 3, "map": 1}
    taken = chip_deadlines.divided(three, until=4 * UNTIL, sms=SMS, pieces=pieces, of=7)
    assert {name: set(slices) for name, slices in taken.items() if name != "map"} == {
        "control": {4 * 7},
        "perception": {4 * 28},
    }
    assert taken["map"] == [4 * (70 + 20 * number) for number in range(UNTIL // 50)]  # 70 ms every 50: it falls behind
    assert chip_deadlines.late(three, taken) == {"control": 0, "perception": 0, "map": UNTIL // 50}
    bytes_too = [Recurring(name="map", kernels=(Kernel(blocks=14, work_slices=1, moved_bytes=5.0),), period=50)]
    half = chip_deadlines.divided(bytes_too, until=1, sms=14, pieces={"map": 7}, of=14, bus_bytes_per_slice=7.0)
    assert half["map"] == [20]  # 70 bytes at 3.5 a slice
    with pytest.raises(ValueError, match="7 at most"):
        chip_deadlines.divided(three, until=4, sms=SMS, pieces={**pieces, "map": 2}, of=7)


def test_turns_hold_until_a_change_of_turn_costs_what_was_left() -> None:
    three = networks(4, block=2)
    free = chip_deadlines.responses(three, until=4 * UNTIL, sms=SMS, rule="turns", turn=4)
    dear = chip_deadlines.responses(three, until=4 * UNTIL, sms=SMS, rule="turns", turn=4, switch=1)
    assert not any(chip_deadlines.late(three, free).values())
    assert chip_deadlines.late(three, dear)["perception"] > 0


def test_the_third_hyperperiod_is_the_second_again_where_every_deadline_holds() -> None:
    for block, how in ((1, {"rule": "priority"}), (2, {"rule": "turns", "turn": 4})):
        three = networks(4, block=block)
        taken = chip_deadlines.responses(three, until=3 * 4 * UNTIL, sms=SMS, **how)
        for slices in taken.values():
            third = len(slices) // 3
            assert slices[third : 2 * third] == slices[2 * third :]


def test_what_is_no_network_is_refused() -> None:
    three = networks(4, block=2)
    with pytest.raises(ValueError, match="period=0"):
        Recurring(name="map", kernels=(), period=0)
    with pytest.raises(ValueError, match="a name of its own"):
        chip_deadlines.responses([*three, three[0]], until=4, sms=SMS, rule="streams")
    with pytest.raises(ValueError, match="must name each network once"):
        chip_deadlines.divided(three, until=4, sms=SMS, pieces={"control": 3}, of=7)
