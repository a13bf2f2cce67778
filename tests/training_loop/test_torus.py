"""All-reduces on a torus: every chip's messages walked, and what Google prints."""

import numpy as np
import pytest

from threeloops.facts import hardware
from threeloops.simulate.training_loop import torus as walked
from threeloops.training_loop.network import collectives, torus


@pytest.mark.parametrize(("side", "axes"), [(2, 2), (3, 2), (4, 2), (2, 3), (3, 3), (5, 1)])
def test_every_link_carries_what_the_formula_says(side: int, axes: int) -> None:
    chips = side**axes
    rng = np.random.default_rng(side * 10 + axes)
    vectors = [rng.random(2 * axes * chips) for _ in range(chips)]
    run = walked.all_reduce(vectors, side=side, axes=axes)
    assert all(np.allclose(held, sum(vectors)) for held in run.outputs)
    expected = torus.torus_all_reduce_s(size_bytes=vectors[0].nbytes, side=side, axes=axes, link_bytes_per_s_one_way=7)
    assert run.seconds(link_bytes_per_s_one_way=7) == pytest.approx(expected)


def test_a_pod_reduces_at_the_rate_that_google_prints() -> None:
    # Google Cloud documentation, TPU v5e, read in 2026: a pod of 256 chips in a 2D torus has an all-reduce bandwidth of
    # 51.2 TB/s: of each chip as much as it sends.
    link = hardware.part("tpu-v5e")["link_bytes_per_s_one_way"] / 4
    seconds = torus.torus_all_reduce_s(size_bytes=1e9, side=16, axes=2, link_bytes_per_s_one_way=link)
    busbw = collectives.busbw_bytes_per_s(op="all_reduce", ranks=256, size_bytes=1e9, seconds=seconds)
    assert 256 * busbw == pytest.approx(51.2e12)


def test_one_axis_is_a_ring_both_ways() -> None:
    # How to Scale Your Model, part 3, question 2 of the second set: 4 * 1024 * 4096 bytes over 9e10 both ways, "roughly
    # 190 us", which leaves out that a chip of four has a quarter of the result itself.
    seconds = torus.torus_all_reduce_s(size_bytes=2 * 1024 * 4096, side=4, axes=1, link_bytes_per_s_one_way=45e9)
    assert seconds / (1 - 1 / 4) == pytest.approx(190e-6, rel=0.03)


def test_what_is_no_torus_is_refused() -> None:
    with pytest.raises(ValueError, match="side=0"):
        torus.torus_all_reduce_s(size_bytes=1, side=0, axes=2, link_bytes_per_s_one_way=1)
    with pytest.raises(ValueError, match=r"inputs has 3 vectors; a torus of 2 \*\* 2 chips takes 4"):
        walked.all_reduce([np.ones(4)] * 3, side=2, axes=2)
