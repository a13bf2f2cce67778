"""Offload held against a clock that plays it, a ring that sends it, a product made in tiles, and the figures that
ZeRO-Infinity prints.
"""

import re

import numpy as np
import pytest

from threeloops.simulate.training_loop import offloaded_layers, ring
from threeloops.training_loop.memory import offload, row_shards
from threeloops.units import GB, TB, TFLOP, GiB

V100 = 70 * TFLOP  # what the paper takes as achievable


def test_published_needs_of_parameters_and_gradients() -> None:
    """Section 4.2: over 70 GB/s keeps more than half of the speed at a batch of one sequence of 1,024 tokens; the
    intensity is seq * batch.
    """
    crossing = offload.weight_crossings_bytes(weight_bytes=2, gradient_bytes=2, recompute="full")
    reuse = offload.arithmetic_intensity(tokens=1024, flops_per_token=8, crossing_bytes=crossing)
    assert reuse == 1024
    assert (
        0.5
        < offload.kept_speed_share(
            arithmetic_intensity=reuse, bytes_per_s_one_way=70 * GB, flops_per_s=V100, overlapped=False
        )
        < 0.51
    )


def test_published_needs_of_optimiser_states() -> None:
    """Section 4.2: 1.5 TB/s for 90 % at a batch of two sequences; the intensity is seq * batch / 4."""
    reuse = offload.arithmetic_intensity(tokens=2048, flops_per_token=8, crossing_bytes=2 * 16)
    assert reuse == 2048 / 4
    assert (
        0.9
        < offload.kept_speed_share(
            arithmetic_intensity=reuse, bytes_per_s_one_way=1.5 * TB, flops_per_s=V100, overlapped=False
        )
        < 0.93
    )


def test_published_working_memory_of_one_operator() -> None:
    """Section 8.5: hidden 8K is the most where pieces of 2 GB are all there is; 16 tiles bring hidden 64K down to the
    working set of 16K.
    """
    whole = offload.tiled_working_bytes(inputs=8192, outputs=4 * 8192, tiles=1, bytes_per_parameter=4)
    assert (
        whole
        == 1 * GiB
        <= 2e9
        < offload.tiled_working_bytes(inputs=16384, outputs=4 * 16384, tiles=1, bytes_per_parameter=4)
    )
    assert offload.tiled_working_bytes(inputs=65536, outputs=4 * 65536, tiles=16, bytes_per_parameter=4) == 4 * whole


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_tokens_needed_give_that_efficiency(share: float) -> None:
    road = {"bytes_per_s_one_way": 25e9, "flops_per_s": 400e12}
    tokens = offload.tokens_needed(efficiency=share, flops_per_token=6, crossing_bytes=6, **road)
    reuse = offload.arithmetic_intensity(tokens=tokens, flops_per_token=6, crossing_bytes=6)
    assert offload.kept_speed_share(arithmetic_intensity=reuse, overlapped=False, **road) == pytest.approx(share)
    assert offload.kept_speed_share(arithmetic_intensity=reuse, overlapped=True, **road) == pytest.approx(
        min(1, share / (1 - share))
    )


def test_efficiency_is_the_share_of_a_clock() -> None:
    """Layers one after the other, then side by side, played: FLOPs over the time that passed."""
    flops, crossing, rate, speed = 60.0, 12.0, 3.0, 10.0
    compute_s, hop_s = flops / speed, crossing / rate
    one = {"arithmetic_intensity": flops / crossing, "bytes_per_s_one_way": rate, "flops_per_s": speed}
    serial = offloaded_layers.stream(layers=50, hops_s=[hop_s], compute_s=compute_s, room=1)
    assert 50 * compute_s / serial.finished_s == pytest.approx(offload.kept_speed_share(**one, overlapped=False))
    for slower in (1, 4):
        beside = offloaded_layers.stream(layers=4000, hops_s=[slower * hop_s], compute_s=compute_s, room=3)
        expected = offload.kept_speed_share(**one | {"bytes_per_s_one_way": rate / slower}, overlapped=True)
        assert 4000 * compute_s / beside.finished_s == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("hops_s", [(3, 2, 1), (1, 5, 2), (2,), (1, 1, 9)])
@pytest.mark.parametrize("compute_s", [1, 4, 8])
def test_streaming_takes_what_the_clock_shows(hops_s: tuple[int, ...], compute_s: int) -> None:
    for prefetched, room in ((True, 30), (False, 1)):
        played = offloaded_layers.stream(layers=30, hops_s=hops_s, compute_s=compute_s, room=room)
        assert played.finished_s == offload.streamed_s(
            num_layers=30, hops_s=hops_s, compute_s=compute_s, prefetched=prefetched
        )
    few = [
        offloaded_layers.stream(layers=30, hops_s=hops_s, compute_s=compute_s, room=room).finished_s
        for room in (1, 2, 3, 4)
    ]
    assert few == sorted(few, reverse=True)


def test_fetching_shards_takes_all_links_and_a_ring() -> None:
    ranks, elements = 6, 60
    shards = [np.ones(elements // ranks) for _ in range(ranks)]
    gathered = ring.all_gather(shards)
    link, exchange = 40.0, 320.0
    seconds = max(shard.nbytes for shard in shards) / link + gathered.sent_bytes[0] / exchange
    sizes = {
        "size_bytes": 8 * elements,
        "ranks": ranks,
        "link_bytes_per_s_one_way": link,
        "exchange_bytes_per_s_one_way": exchange,
    }
    assert offload.sharded_fetch_s(**sizes) == pytest.approx(seconds)
    handed_round = ring.broadcast(np.ones(elements), ranks=ranks, chunks=elements)
    owner_s = 8 * elements / link + max(handed_round.sent_bytes) / exchange
    assert offload.owner_fetch_s(**sizes) == pytest.approx(owner_s)
    alone = sizes | {"ranks": 1}
    assert offload.owner_fetch_s(**alone) == offload.sharded_fetch_s(**alone) == 12


def test_a_host_update_moves_every_value_once() -> None:
    """Values one by one: what is read and written in the host's memory, and what each link carries."""
    values, links, gradient, state, weight = 24, 4, 2, 12, 2
    per_link = [0] * links
    memory = 0
    for value in range(values):
        per_link[value % links] += gradient
        # the gradient read; master copy and moments read and written; the 16-bit weight written
        memory += gradient + state + state + weight
    step = offload.host_update(
        num_parameters=values,
        gradient_bytes=gradient,
        state_bytes=state,
        weight_bytes=weight,
        links=links,
        link_bytes_per_s_one_way=3,
        memory_bytes_per_s=7,
    )
    assert step.down_s == max(per_link) / 3 == step.up_s
    assert step.update_s == memory / 7
    assert step.total_s == pytest.approx(2 * 12 / 3 + 672 / 7)


@pytest.mark.parametrize("tiles", [1, 3, 4])
def test_tiles_change_the_working_set_and_nothing_else(tiles: int) -> None:
    rng = np.random.default_rng(0)
    x, weight, gradient = rng.normal(size=(5, 6)), rng.normal(size=(12, 6)), rng.normal(size=(5, 12))
    made = offloaded_layers.tiled_linear(x, weight, gradient, tiles=tiles)
    np.testing.assert_allclose(made.output, x @ weight.T, rtol=1e-12)
    np.testing.assert_allclose(made.input_gradient, gradient @ weight, rtol=1e-12)
    assert made.peak_bytes == offload.tiled_working_bytes(inputs=6, outputs=12, tiles=tiles, bytes_per_parameter=8)
    assert made.fetched_bytes == 2 * weight.nbytes


@pytest.mark.parametrize("ranks", [1, 3, 4, 7])
def test_rows_are_dealt_as_torch_chunk_does(ranks: int) -> None:
    for rows in range(1, 40):
        dealt = tuple(row_shards.rows_on_rank(rows=rows, ranks=ranks, rank=rank) for rank in range(ranks))
        assert dealt == offloaded_layers.dealt_rows(rows, ranks)
        assert sum(dealt) == rows


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: row_shards.rows_on_rank(rows=5, ranks=4, rank=4), "rank=4 must be below ranks=4"),
        (
            lambda: offload.tiled_working_bytes(inputs=4, outputs=10, tiles=3, bytes_per_parameter=4),
            "tiles=3 must divide outputs=10",
        ),
        (
            lambda: offload.tokens_needed(
                efficiency=1, flops_per_token=6, crossing_bytes=6, bytes_per_s_one_way=1, flops_per_s=1
            ),
            "efficiency=1 must lie between 0 and 1",
        ),
        (
            lambda: offload.kept_speed_share(
                arithmetic_intensity=1, bytes_per_s_one_way=0, flops_per_s=1, overlapped=True
            ),
            "bytes_per_s_one_way=0 must be",
        ),
    ],
)
def test_refusals(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()  # type: ignore[operator]
