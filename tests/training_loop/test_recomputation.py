"""Recomputation and step memory: the formulas against a step that is played, and both against a step that torch
runs.
"""

from dataclasses import replace
from math import isclose

import numpy as np
import pytest

from threeloops.models.architecture import Attention, DenseMlp, Layer, Model
from threeloops.models.catalogue import model
from threeloops.simulate.training_loop.block_tape import Blocks
from threeloops.simulate.training_loop.recomputed_step import Stretch, even_stretches, play
from threeloops.training_loop.memory import recomputation
from threeloops.training_loop.memory.fit import rank_memory
from threeloops.training_loop.memory.setup import Training
from threeloops.training_loop.memory.step_memory import PARTS, step_memory

LAYER = Layer(
    attention=Attention(num_heads=4, num_kv_heads=2, head_dim=12),
    mlp=DenseMlp(intermediate=144, gated=True, activation="silu"),
    norm="rmsnorm",
    num_norms=2,
)
SMALL = Model(name="small", hidden=48, vocab=60, groups=((LAYER, 5),), tied_head=False, max_context=99)


def setup(built: Model, **changes: object) -> Training:
    options = {
        "recipe": "fp32",
        "zero_stage": 0,
        "dp": 1,
        "bytes_per_element": 4,
        "kernels": "sdpa",
        "recompute": "none",
        "tp": 1,
        "pp": 1,
        "sequence_parallel": False,
        "schedule": "1f1b",
        "micro_batches": 1,
        "dropout": False,
    }
    return Training(model=built, **(options | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("num_layers", [1, 7, 12])
def test_a_step_that_keeps_everything_holds_every_layer(num_layers: int) -> None:
    played = play([Stretch(layers=num_layers, again=False)], block_bytes=34, input_bytes=2)
    assert recomputation.kept_bytes(num_layers=num_layers, block_bytes=34) == played.peak_bytes


@pytest.mark.parametrize("num_layers", [1, 7, 12, 31])
@pytest.mark.parametrize(("block", "entry"), [(34, 2), (5, 5), (9, 4)])
def test_segments_hold_what_a_played_step_holds(num_layers: int, block: int, entry: int) -> None:
    for every in range(1, num_layers + 1):
        told = recomputation.segments_peak_bytes(
            num_layers=num_layers, every=every, block_bytes=block, input_bytes=entry
        )
        played = play(even_stretches(num_layers=num_layers, every=every), block_bytes=block, input_bytes=entry)
        assert told == played.peak_bytes
        assert played.layer_runs == 2 * num_layers
        assert played.moments[-1].alive_bytes == 0


@pytest.mark.parametrize("again", range(8))
def test_the_first_layers_recomputed_hold_what_a_played_step_holds(again: int) -> None:
    played = play([Stretch(layers=1, again=place < again) for place in range(7)], block_bytes=9, input_bytes=2)
    assert (
        recomputation.first_layers_peak_bytes(num_layers=7, recomputed_layers=again, block_bytes=9, input_bytes=2)
        == played.peak_bytes
    )
    assert (
        recomputation.fewest_recomputed_layers(
            num_layers=7, block_bytes=9, input_bytes=2, usable_bytes=played.peak_bytes
        )
        <= again
    )


@pytest.mark.parametrize("num_layers", [1, 7, 12, 31])
@pytest.mark.parametrize(("block", "entry"), [(34, 2), (5, 5), (9, 4)])
def test_one_layer_in_k_run_again_leaves_what_a_played_step_leaves(num_layers: int, block: int, entry: int) -> None:
    for every in range(1, num_layers + 2):
        loop = [Stretch(layers=1, again=layer % every == 0) for layer in range(num_layers)]
        forward = play(loop, block_bytes=block, input_bytes=entry).moments[:num_layers]
        told = recomputation.every_kth_kept_bytes(
            num_layers=num_layers, every=every, block_bytes=block, input_bytes=entry
        )
        assert told == forward[-1].alive_bytes


@pytest.mark.parametrize(("num_layers", "heads", "hidden", "room"), [(1, 3, 6, 3000), (2, 2, 10, 9000), (3, 4, 8, 800)])
def test_one_token_more_than_the_longest_sequence_does_not_fit(
    num_layers: int, heads: int, hidden: int, room: int
) -> None:
    blocks, fits = Blocks(layers=num_layers, heads=heads, hidden=hidden, dtype=np.float16), 0
    while (
        blocks.peak_bytes(blocks.inputs(batch=1, sequence=fits + 1), tp=1, sequence_parallel=False, recompute="none")
        <= room
    ):
        fits += 1
    assert fits == recomputation.longest_kept_sequence(
        num_layers=num_layers, hidden=hidden, num_heads=heads, usable_bytes=room
    )


def test_the_square_root_is_right_where_a_layer_keeps_its_input_alone_and_wrong_for_transformers() -> None:
    def peak(every: int, block: int, entry: int) -> float:
        return play(even_stretches(num_layers=36, every=every), block_bytes=block, input_bytes=entry).peak_bytes

    assert peak(recomputation.square_root_every(num_layers=36), 1, 1) == min(
        peak(every, 1, 1) for every in range(1, 37)
    )
    best = recomputation.best_every(num_layers=36, block_bytes=34, input_bytes=2)
    assert peak(best, 34, 2) == min(peak(every, 34, 2) for every in range(1, 37))
    assert peak(recomputation.square_root_every(num_layers=36), 34, 2) > 2 * peak(best, 34, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: recomputation.segments_peak_bytes(num_layers=4, every=5, block_bytes=3, input_bytes=1),
            "every=5 must be at most num_layers=4",
        ),
        (
            lambda: recomputation.longest_kept_sequence(num_layers=4, hidden=6, num_heads=3, usable_bytes=0),
            "usable_bytes=0 must be greater than 0",
        ),
        (
            lambda: recomputation.segments_peak_bytes(num_layers=4, every=2, block_bytes=3, input_bytes=4),
            "input_bytes=4 must be at most block_bytes=3",
        ),
        (
            lambda: recomputation.every_kth_kept_bytes(num_layers=4, every=0, block_bytes=3, input_bytes=1),
            "every=0 must be a whole number of at least 1",
        ),
        (
            lambda: recomputation.first_layers_peak_bytes(
                num_layers=4, recomputed_layers=5, block_bytes=3, input_bytes=1
            ),
            "recomputed_layers=5 must be at most",
        ),
        (
            lambda: recomputation.fewest_recomputed_layers(num_layers=4, block_bytes=3, input_bytes=1, usable_bytes=5),
            "too little even with every layer",
        ),
        (
            lambda: recomputation.recomputed_step_s(forward_s=1, backward_s=2, recomputed_share=1.5),
            "nothing is run three times",
        ),
    ],
)
def test_the_impossible_is_refused(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]


# --- the film of a step ---


@pytest.mark.parametrize("zero_stage", [0, 1, 2, 3])
@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_the_highest_moment_is_that_of_training_fit(zero_stage: int, recompute: str) -> None:
    gathered = 2 if zero_stage == 3 else None
    training = setup(
        model("llama-3-8b"),
        recipe="megatron",
        zero_stage=zero_stage,
        dp=8,
        bytes_per_element=2,
        kernels="korthikanti",
        recompute=recompute,
        gathered_layers=gathered,
    )
    film = step_memory(training, micro_batch=2, sequence=2048, every=1, host="nothing")
    assert isclose(film.peak.total_bytes, rank_memory(training, stage=0, micro_batch=2, sequence=2048).total_bytes)
    assert len(film.moments) == 2 * 32 + 3


@pytest.mark.parametrize("every", [1, 2, 3, 5, 8])
def test_what_waits_and_comes_back_is_what_a_played_step_holds(every: int) -> None:
    """Layers alone: without the embedding's tokens, and without the head."""
    training = setup(model("llama-3-8b"), recipe="megatron", bytes_per_element=2, kernels="fused", recompute="full")
    film = step_memory(training, micro_batch=1, sequence=1024, every=every, host="nothing")
    tokens = film.moments[0].bytes_by_part[3] - 2 * 1024 * 4096
    backward = [
        sum(moment.bytes_by_part[3:5]) - tokens for moment in film.moments if moment.name.startswith("backward, layer")
    ]
    block = (
        rank_memory(replace(training, recompute="none"), stage=0, micro_batch=1, sequence=1024).layer_activations_bytes
        / 32
    )
    played = play(even_stretches(num_layers=32, every=every), block_bytes=block, input_bytes=2 * 1024 * 4096)
    assert isclose(max(backward), played.peak_bytes)
    after = [moment.alive_bytes for moment in played.moments if moment.what.startswith("backward")]
    assert isclose(backward[1], after[0]) or every == 1


def test_the_optimiser_in_host_memory_leaves_the_gpu_and_arrives_there() -> None:
    here, there = (
        step_memory(setup(SMALL), micro_batch=1, sequence=9, every=1, host=host) for host in ("nothing", "optimiser")
    )
    assert here.peak.total_bytes - there.peak.total_bytes == there.host_bytes > 0 == here.host_bytes
    assert here.moments[-1].bytes_by_part[PARTS.index("optimiser state")] == there.host_bytes


@pytest.mark.parametrize(
    ("changes", "asked", "message"),
    [
        ({"pp": 5}, {}, "pp=5 must be 1"),
        ({"recipe": "autocast"}, {}, "makes copies of weights"),
        ({}, {"every": 2}, "every=2 needs recompute='full'"),
        ({"recompute": "full"}, {"every": 6}, "every=6 must be at most the model's 5 layers"),
        ({}, {"host": "disk"}, "host='disk' is not known"),
    ],
)
def test_a_film_that_cannot_be_made_is_refused(
    changes: dict[str, object], asked: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        step_memory(
            setup(SMALL, **changes), **({"micro_batch": 1, "sequence": 9, "every": 1, "host": "nothing"} | asked)
        )  # type: ignore[arg-type]


# --- a step that torch runs ---


@pytest.mark.parametrize(("every", "fake"), [(0, False), (1, False), (2, False), (5, True)])
def test_what_waits_at_the_loss_is_predicted_to_the_byte(every: int, fake: bool) -> None:
    torch = pytest.importorskip("torch")
    from threeloops.measure.training_loop import watched_step

    seen = watched_step.watch(
        SMALL, sequence=7, micro_batch=2, kernels="sdpa", dtype=torch.float32, every=every, steps=1, fake=fake
    )
    film = step_memory(
        setup(SMALL, recompute="full" if every else "none"),
        micro_batch=2,
        sequence=7,
        every=max(1, every),
        host="nothing",
    )
    at_loss = next(moment for moment in film.moments if moment.name == "forward, loss")
    # the loss, and the weight that the cross-entropy divided by
    assert seen.kept_bytes - sum(at_loss.bytes_by_part[3:]) == 8
    # among fake tensors, AdamW's counters of steps are seen as well
    assert fake or seen.states_bytes == film.moments[-1].total_bytes
    assert seen.layer_runs == (10 if every else 5)


def test_a_second_step_starts_where_the_first_one_ended() -> None:
    torch = pytest.importorskip("torch")
    from threeloops.measure.training_loop import watched_step

    seen = watched_step.watch(SMALL, sequence=7, micro_batch=2, kernels="sdpa", dtype=torch.float32, every=0, steps=2)
    rise = seen.peak("forward 2").alive_bytes - seen.peak("forward 1").alive_bytes
    assert abs(rise - 2 * seen.weights_bytes) <= 128  # two moments for every weight
    parts, names = seen.by_phase(columns=20)
    assert list(parts) == ["forward", "backward", "update"]
    assert len(names) <= 20
    assert max(max(values) for values in parts.values()) == max(reading.alive_bytes for reading in seen.readings)
