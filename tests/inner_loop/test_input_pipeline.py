"""Workers and padding: formulas against loops that know nothing of them."""

import random

import pytest

from threeloops.inner_loop import input_pipeline, padding
from threeloops.simulate.inner_loop import step


@pytest.mark.parametrize("seed", range(15))
def test_one_worker_fewer_makes_the_device_wait(seed):
    rng = random.Random(seed)
    sample_s, samples, step_s = rng.uniform(0.5, 2.0), rng.randrange(3, 12), rng.uniform(2.0, 5.0)
    needed = input_pipeline.workers_needed(sample_s=sample_s, samples_per_step=samples, step_s=step_s)

    def pace_s(workers):
        return step.play(
            num_steps=60 * workers, workers=workers, batch_s=sample_s * samples, queue=2, stages=(step_s,)
        ).pace_s(skip=30 * workers)

    assert pace_s(needed) == pytest.approx(step_s, rel=1e-9)
    if needed > 1:
        assert pace_s(needed - 1) > step_s * (1 + 1e-6)


def test_a_quotient_that_is_whole_needs_no_worker_more():
    assert input_pipeline.workers_needed(sample_s=0.1, samples_per_step=3, step_s=0.3) == 1


@pytest.mark.parametrize(("workers", "ahead"), [(1, 1), (3, 2), (8, 5)])
def test_workers_prepare_until_none_may_prepare_another(workers, ahead):
    held = [bytearray() for _ in range(workers)]
    while any(len(batches) < 24 * ahead for batches in held):
        next(batches for batches in held if len(batches) < 24 * ahead).extend(bytes(24))
    waiting = sum(len(batches) for batches in held)
    assert input_pipeline.waiting_bytes(num_workers=workers, batches_per_worker=ahead, batch_bytes=24) == waiting


@pytest.mark.parametrize("length", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("multiple", [1, 7, 64])
def test_a_padded_length_is_the_first_multiple_on_the_way(length, multiple):
    longer = length
    while longer % multiple:
        longer += 1
    assert padding.padded(length=length, multiple=multiple) == longer


@pytest.mark.parametrize("seed", range(25))
def test_shapes_and_padding_are_what_walking_through_all_lengths_finds(seed):
    rng = random.Random(seed)
    shortest, multiple = rng.randrange(1, 300), rng.randrange(1, 70)
    lengths = range(shortest, shortest + rng.randrange(1, 400))
    stepped = [next(n for n in range(length, length + multiple) if n % multiple == 0) for length in lengths]
    assert padding.num_shapes(shortest=lengths[0], longest=lengths[-1], multiple=multiple) == len(set(stepped))
    wasted = sum(stepped) - sum(lengths)
    assert padding.mean_padding(shortest=lengths[0], longest=lengths[-1], multiple=multiple) == pytest.approx(
        wasted / len(lengths)
    )


def test_over_whole_multiples_half_a_multiple_is_wasted():
    assert padding.mean_padding(shortest=1, longest=640, multiple=64) == pytest.approx((64 - 1) / 2)
    assert padding.mean_padding(shortest=5, longest=50, multiple=1) == 0
    assert padding.mean_padding(shortest=5, longest=5, multiple=8) == 3


def test_refusals():
    with pytest.raises(ValueError, match="shortest=9 must be at most longest=8"):
        padding.num_shapes(shortest=9, longest=8, multiple=1)
    with pytest.raises(ValueError, match="multiple"):
        padding.padded(length=3, multiple=0)
    with pytest.raises(ValueError, match="step_s"):
        input_pipeline.workers_needed(sample_s=1, samples_per_step=1, step_s=0)
    with pytest.raises(ValueError, match="batch_bytes"):
        input_pipeline.waiting_bytes(num_workers=1, batches_per_worker=1, batch_bytes=0)
