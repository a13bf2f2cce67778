"""Networks on one chip: waits and ends by formula, counted block by block, and as NVIDIA published them."""

import math
from itertools import pairwise

import pytest

from threeloops.driving import shared_chip, soc_fit
from threeloops.driving.soc_fit import Stage
from threeloops.facts import launch_waits
from threeloops.simulate.driving import chip_sharing
from threeloops.simulate.driving.chip_sharing import Kernel, Network, Span

SMS, WAVE, WAVES = 4, 6, 5
LOAD = Network(name="load", kernels=(Kernel(blocks=SMS * WAVES, work_slices=WAVE),) * 3)
KERNEL = WAVE * WAVES


def small(launched: int, *, priority: int = 0) -> Network:
    return Network(name="small", kernels=(Kernel(blocks=1, work_slices=1),), launched=launched, priority=priority)


def waits(rule: str, *, priority: int = 0, own: dict[str, int] | None = None) -> list[int]:
    """Of launches in every slice of the load's second kernel."""
    moments = range(KERNEL, 2 * KERNEL)
    found = (
        chip_sharing.run([LOAD, small(at, priority=priority)], sms=SMS, rule=rule, own=own)["small"] for at in moments
    )
    return [one.began - at for one, at in zip(found, moments, strict=True)]


def test_a_launch_waits_half_a_kernel_and_any_share_of_it() -> None:
    counted = sorted(waits("streams"))
    told = shared_chip.mean_launch_wait_s(kernel_s=KERNEL, busy_share=1.0)
    assert sum(counted) / KERNEL == pytest.approx(told, abs=0.5)  # a slice is a moment with a length
    for share in (0.5, 0.8, 0.9):
        told = shared_chip.launch_wait_at_s(kernel_s=KERNEL, busy_share=1.0, share=share)
        assert counted[round(share * KERNEL) - 1] == pytest.approx(told, abs=1)


def test_a_chip_that_is_busy_half_of_the_time_makes_wait_half_as_long() -> None:
    once = Network(name="load", kernels=LOAD.kernels[:1])
    found = [
        chip_sharing.run([once, small(at)], sms=SMS, rule="streams")["small"].began - at for at in range(2 * KERNEL)
    ]
    told = shared_chip.mean_launch_wait_s(kernel_s=KERNEL, busy_share=0.5)
    assert sum(found) / len(found) == pytest.approx(told, abs=0.5)
    told = shared_chip.launch_wait_at_s(kernel_s=KERNEL, busy_share=0.5, share=0.9)
    assert sorted(found)[round(0.9 * len(found)) - 1] == pytest.approx(told, abs=1)
    assert shared_chip.launch_wait_at_s(kernel_s=KERNEL, busy_share=0.5, share=0.4) == sorted(found)[23] == 0


def test_priority_waits_for_a_wave_and_own_sms_for_nobody() -> None:
    told = shared_chip.mean_launch_wait_s(kernel_s=WAVE, busy_share=1.0)
    assert sum(waits("priority", priority=1)) / KERNEL == pytest.approx(told, abs=0.5)
    assert set(waits("own", own={"load": 3, "small": 1})) == {0}
    assert waits("priority", priority=0) == waits("streams")


def test_the_formula_meets_what_nvidia_published() -> None:
    """Within a tenth. On Orin the load's time is not printed: a kernel with twice the bytes is waited for 2 to 2.6
    times as long.
    """
    shared, own = launch_waits.SAMPLE["all SMs"], launch_waits.SAMPLE["own SMs"]
    load = {"kernel_s": shared["load"], "busy_share": 1.0}
    assert shared_chip.mean_launch_wait_s(**load) == pytest.approx(shared["mean"], rel=0.04)
    for share in (0.5, 0.95, 0.99):
        assert shared_chip.launch_wait_at_s(**load, share=share) == pytest.approx(shared[share], rel=0.1)
        assert own[share] < shared[share] / 30
    for threads in (64, 128, 256, 512):
        for less, more in pairwise(launch_waits.ORIN_MEANS_S[5, size, threads] for size in (1, 2, 4)):
            assert 2 < more[0] / less[0] < 2.8
            assert more[1] < 40e-6


def test_two_networks_side_by_side_take_what_the_fuller_resource_takes() -> None:
    """Arithmetic on three of four SMs, bytes from the fourth: counted to a slice, as the formula says."""
    thinks = Network(name="thinks", kernels=(Kernel(blocks=30, work_slices=10),))
    reads = Network(name="reads", kernels=(Kernel(blocks=20, work_slices=1, moved_bytes=50.0),))
    bus, peak = 10.0, float(SMS)  # bytes and operations of a slice
    stages = [
        Stage(name="thinks", engine="gpu", ops=300, moved_bytes=0, peak_ops_per_s=peak),
        Stage(name="reads", engine="gpu", ops=20, moved_bytes=1000, peak_ops_per_s=peak),
    ]
    both = [thinks, reads]
    shared = {"sms": SMS, "bus_bytes_per_slice": bus}
    ends = chip_sharing.run(both, rule="own", own={"thinks": 3, "reads": 1}, **shared)
    told = shared_chip.side_by_side_s(stages, memory_bytes_per_s=bus)
    assert max(one.ended for one in ends.values()) == told == 100
    alone = [chip_sharing.run([one], rule="streams", **shared)[one.name].ended for one in both]
    in_turn = soc_fit.frame_latency_s(stages, memory_bytes_per_s=bus)
    assert in_turn == 175
    assert sum(alone) == pytest.approx(in_turn, abs=10)


def test_a_network_that_waits_for_bytes_needs_few_sms() -> None:
    bus, peak = 10.0, float(SMS)
    for work, fewest in ((1, 1), (6, 2), (11, 3)):
        reads = Network(name="reads", kernels=(Kernel(blocks=24, work_slices=work, moved_bytes=50.0),))
        stage = Stage(name="reads", engine="gpu", ops=24 * work, moved_bytes=24 * 50, peak_ops_per_s=peak)
        ends = {
            sms: chip_sharing.run([reads], sms=sms, rule="streams", bus_bytes_per_slice=bus)["reads"].ended
            for sms in range(1, SMS + 1)
        }
        enough = [sms for sms, end in ends.items() if end <= 1.02 * ends[SMS]]
        told = shared_chip.sms_for_memory_bound(stage, sms=SMS, memory_bytes_per_s=bus)
        assert math.ceil(told) == min(enough) == fewest, ends


def test_turns_of_one_resource_end_the_first_sooner_and_the_last_no_later() -> None:
    """Two networks that both fill the SMs: halves for both end together; one after the other, one is done at half."""
    both = [Network(name=name, kernels=(Kernel(blocks=40, work_slices=4),)) for name in ("camera", "words")]
    halves = chip_sharing.run(both, sms=SMS, rule="own", own={"camera": 2, "words": 2})
    assert {one.ended for one in halves.values()} == {80}
    turns = chip_sharing.run(both, sms=SMS, rule="turns", turn=40)
    assert (turns["camera"].ended, turns["words"].ended) == (40, 80)
    short = chip_sharing.run(both, sms=SMS, rule="turns", turn=4, switch=1)
    assert (short["camera"].ended, short["words"].ended) == (94, 99)  # a change costs a slice, 19 changes


def test_who_comes_while_another_one_has_its_turn_waits_for_the_rest_of_it() -> None:
    load = Network(name="load", kernels=(Kernel(blocks=400, work_slices=1),))
    found = [chip_sharing.run([load, small(at)], sms=SMS, rule="turns", turn=10)["small"].began for at in (0, 13, 20)]
    assert found == [10, 20, 20]


def test_what_is_no_way_to_share_is_refused() -> None:
    with pytest.raises(ValueError, match="must name each network"):
        chip_sharing.run([LOAD], sms=SMS, rule="own", own={"small": 1})
    with pytest.raises(ValueError, match="turn"):
        chip_sharing.run([LOAD], sms=SMS, rule="turns")
    with pytest.raises(ValueError, match="rule"):
        chip_sharing.run([LOAD], sms=SMS, rule="luck")
    with pytest.raises(RuntimeError, match="not done"):
        chip_sharing.run([LOAD], sms=SMS, rule="streams", most_slices=10)
    assert chip_sharing.run([LOAD], sms=SMS, rule="streams")["load"] == Span(0, 3 * KERNEL)
