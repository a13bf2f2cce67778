"""The optimisation stack's formulas against published numbers, brute force and limits."""

import itertools
import random

import pytest

from threeloops.facts import hardware
from threeloops.models import catalogue
from threeloops.models.parameters import model_parameters
from threeloops.simulate.inner_loop import step as steps_player
from threeloops.simulate.training_loop import rollouts as player
from threeloops.training_loop.updates import (
    accumulation,
    adapters,
    layer_dropping,
    optimisation_stack,
    optimisers,
    rollouts,
)
from threeloops.training_loop.updates.optimisation_stack import Machine, Setup, stacked

GPT2 = catalogue.model("gpt2-xl")
H100 = hardware.part("h100-sxm5")
MACHINE = Machine(
    matrix_flops_per_s={"fp32": 5e13, "tf32": 3.5e14, "bf16": 7e14},
    memory_bytes_per_s=3.35e12,
    usable_bytes=H100["usable_bytes"],
    sample_s=0.25,
    dollars_per_hour=3,
)

# --- optimisers ---


def test_muons_published_overheads() -> None:
    """Jordan's post: 0.7 % for NanoGPT (768 wide, 524,288 tokens per update), 0.5 % for Llama 405B (16,384 wide, 16
    million).
    """
    assert optimisers.newton_schulz_share(rows=768, columns=768, iterations=5, tokens=524_288) == pytest.approx(
        0.007, rel=0.06
    )
    assert optimisers.newton_schulz_share(
        rows=16_384, columns=16_384, iterations=5, tokens=16_000_000
    ) == pytest.approx(0.005, rel=0.06)


def test_a_matrix_and_its_transpose_cost_muon_the_same() -> None:
    one = optimisers.newton_schulz_flops(rows=6, columns=40, iterations=3)
    assert one == optimisers.newton_schulz_flops(rows=40, columns=6, iterations=3)
    counted = sum(2 for m, k, n in ((6, 40, 6), (6, 6, 6), (6, 6, 40)) for _ in range(m * k * n))
    assert one == 3 * counted


def test_narrow_moments_move_fewer_bytes_than_wide_ones_by_what_they_are_narrower() -> None:
    wide, narrow = (optimisers.narrow_update_bytes(num_parameters=10, moment_bytes=bytes_each) for bytes_each in (8, 2))
    assert wide - narrow == 10 * 2 * 6


@pytest.mark.parametrize(("narrow", "wide", "block"), [(96, 7, 16), (320, 50, 64), (512, 0, 256)])
def test_8_bit_moments_against_a_walk_over_their_values(narrow: int, wide: int, block: int) -> None:
    counted = 0
    for _moment in ("momentum", "variance"):
        counted += sum(4 for _ in range(wide))
        counted += sum(1 + 4 * (place % block == 0) for place in range(narrow))
    told = optimisers.adam_8bit_state_bytes(num_parameters=narrow + wide, wide_parameters=wide, block=block)
    assert told == counted
    with pytest.raises(ValueError, match="wide_parameters=9 must be at most num_parameters=8"):
        optimisers.adam_8bit_state_bytes(num_parameters=8, wide_parameters=9, block=block)


@pytest.mark.parametrize("moment_bytes", [2, 8])
def test_an_update_in_one_kernel_reads_and_writes_value_by_value(moment_bytes: int) -> None:
    moved = 0
    for _parameter in range(12):
        moved += 4 + 4 + moment_bytes  # read: weight, gradient, moments
        moved += 4 + moment_bytes  # written: weight, moments
    assert optimisers.narrow_update_bytes(num_parameters=12, moment_bytes=moment_bytes) == moved


@pytest.mark.parametrize("warm_up", [0, 15, 60])
def test_a_run_sends_wide_and_then_narrow_step_by_step(warm_up: int) -> None:
    sent = sum(16 if step < warm_up else 1 for step in range(100))
    told = optimisers.compressed_volume(warm_up_share=warm_up / 100, bits_before=16, bits_after=1)
    assert told == pytest.approx(sent / sum(16 for _step in range(100)))


def test_compression_ends() -> None:
    assert optimisers.compressed_volume(warm_up_share=1, bits_before=16, bits_after=1) == 1
    assert optimisers.compressed_volume(warm_up_share=0, bits_before=32, bits_after=1) == 1 / 32
    with pytest.raises(ValueError, match="warm_up_share=15 must lie between 0 and 1"):
        optimisers.compressed_volume(warm_up_share=15, bits_before=16, bits_after=1)


def test_every_layer_is_kept_a_step_less_often_than_the_one_before() -> None:
    """Walked down a straight line that starts above the first layer with 1 and ends on the last."""
    kept, step = 1.0, (1.0 - 0.4) / 12
    for layer in range(1, 13):
        kept -= step
        assert layer_dropping.keep_probability(layer=layer, num_layers=12, kept_last=0.4) == pytest.approx(kept)


def test_tensors_between_products_are_read_and_written_one_by_one() -> None:
    """GPT-2 XL in plain operations: two adds with their norms a layer, and GELU in eight steps."""
    chains = {1600: [2 + 1, 1 + 1] * 2, 6400: [1 + 1, 1 + 1, 2 + 1, 1 + 1, 1 + 1, 1 + 1, 1 + 1, 2 + 1]}
    moved = sum(2 * width * tensors for _layer in range(48) for width, steps in chains.items() for tensors in steps)
    assert optimisation_stack.between_bytes(GPT2, compiled=False, bytes_per_element=2) == moved
    once = {1600: [2 + 2] * 2, 6400: [1 + 1]}  # in one kernel each: what comes from outside, and what is needed later
    fused = sum(2 * width * tensors for _layer in range(48) for width, steps in once.items() for tensors in steps)
    assert optimisation_stack.between_bytes(GPT2, compiled=True, bytes_per_element=2) == fused


def test_dropped_layers_against_dice() -> None:
    dice, num_layers = random.Random(3), 10
    ran = [
        dice.random() < layer_dropping.keep_probability(layer=layer, num_layers=num_layers, kept_last=0.3)
        for _ in range(20_000)
        for layer in range(1, 11)
    ]
    assert sum(ran) / len(ran) == pytest.approx(
        layer_dropping.kept_share(num_layers=num_layers, kept_last=0.3), abs=0.005
    )
    with pytest.raises(ValueError, match="layer=11 must be at most num_layers=10"):
        layer_dropping.keep_probability(layer=11, num_layers=10, kept_last=0.3)


# --- accumulation ---


def test_weights_give_every_micro_batch_the_same_say() -> None:
    lengths = [3, 8, 21]
    weights = accumulation.token_weights(lengths)
    assert [weight * length for weight, length in zip(weights, lengths, strict=True)] == pytest.approx(
        [sum(lengths) / 3] * 3
    )
    assert accumulation.token_weights([7, 7]) == (1, 1)


@pytest.mark.parametrize(("tokens", "message"), [([], "at least one"), ([4, 0], "tokens=0 must be a whole number")])
def test_micro_batches_without_tokens_are_refused(tokens: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        accumulation.token_weights(tokens)


@pytest.mark.parametrize(("replicas", "micro_batches", "size"), [(3, 4, 2), (5, 1, 3), (1, 6, 1)])
def test_sums_move_a_weight_as_the_mean_does(replicas: int, micro_batches: int, size: int) -> None:
    rng, weight = random.Random(replicas), 0.7
    samples = [(rng.uniform(-1, 2), rng.uniform(-3, 1)) for _ in range(replicas * micro_batches * size)]
    gradients = [2 * (weight * x - y) * x for x, y in samples]  # of the squared error of weight * x
    wanted = weight - 0.3 * sum(gradients) / len(gradients)
    left, added_up = iter(gradients), 0.0
    for _replica in range(replicas):
        for _micro_batch in range(micro_batches):
            added_up += sum(itertools.islice(left, size)) / size
    rate = accumulation.learning_rate_of_sums(learning_rate=0.3, replicas=replicas, micro_batches=micro_batches)
    assert weight - rate * added_up == pytest.approx(wanted)
    with pytest.raises(ValueError, match="micro_batches=0"):
        accumulation.learning_rate_of_sums(learning_rate=0.3, replicas=replicas, micro_batches=0)


def test_a_batch_that_does_not_divide_is_refused() -> None:
    # 16 * 8 = 128 sequences and the like
    assert accumulation.steps(tokens_per_update=1024, micro_batch=4, sequence=64, replicas=2) == 2
    with pytest.raises(ValueError, match="1,000 is not a multiple of micro_batch\\*sequence\\*replicas=512"):
        accumulation.steps(tokens_per_update=1000, micro_batch=4, sequence=64, replicas=2)


# --- adapters ---


def test_published_adapters() -> None:
    """Hu et al., section 7.1: on GPT-3, rank 4 on queries and values, or rank 8 on one of them, are 18 million
    parameters.
    """
    gpt3 = catalogue.model("gpt3-175b")
    for rank, matrices in ((4, ("query", "value")), (8, ("query",))):
        assert adapters.model_adapter_parameters(gpt3, rank=rank, matrices=matrices) == pytest.approx(18e6, rel=0.06)


@pytest.mark.parametrize(("block", "second"), [(64, 256), (16, 4)])
def test_codes_and_scales_written_down_weight_by_weight(block: int, second: int) -> None:
    bits, weights = 0, 3 * block * second
    for weight in range(weights):
        bits += 4
        bits += 8 if weight % block == 0 else 0
        bits += 32 if weight % (block * second) == 0 else 0
    assert adapters.nf4_bits(block=block, second_block=second) == pytest.approx(bits / weights)


def test_second_scales_save_what_the_paper_says() -> None:
    """Dettmers et al.: 0.5 bits for fp32 scales per 64 weights become 0.127."""
    assert adapters.nf4_bits() - 4 == pytest.approx(0.127, abs=0.0005)


def test_adapters_on_matrices_that_are_not_there_are_refused() -> None:
    with pytest.raises(ValueError, match="matrix='gate' is not known"):
        adapters.model_adapter_parameters(GPT2, rank=4, matrices=["gate"])
    mixtral = catalogue.model("mixtral-8x7b")
    assert adapters.model_adapter_parameters(mixtral, rank=4, matrices=["query"]) == 32 * 4 * (4096 + 4096)
    with pytest.raises(ValueError, match="matrix='up' is not known"):
        adapters.model_adapter_parameters(mixtral, rank=4, matrices=["query", "up"])
    with pytest.raises(ValueError, match="not beside latent attention"):
        adapters.model_adapter_parameters(catalogue.model("deepseek-v3"), rank=4, matrices=["query"])


# --- rollouts ---


@pytest.mark.parametrize("seed", range(20))
def test_writing_takes_as_long_as_it_is_played(seed: int) -> None:
    dice = random.Random(seed)
    lengths = [dice.randrange(1, 60) for _ in range(dice.randrange(1, 12))]
    played = player.play(lengths, seats=len(lengths), weights_s=0.5, response_s=0.03)
    assert rollouts.rollout_s(lengths, weights_s=0.5, response_s=0.03) == pytest.approx(played.finished_s)
    assert rollouts.seats_used(lengths) == pytest.approx(played.used_steps / played.seat_steps)


def test_few_seats_take_longer_and_are_used_better() -> None:
    lengths = [10] * 12 + [40]
    few, many = (player.play(lengths, seats=seats, weights_s=1, response_s=0) for seats in (3, 13))
    assert few.finished_s > many.finished_s
    assert few.used_steps / few.seat_steps > many.used_steps / many.seat_steps


# --- the stack ---


def setups() -> list[Setup]:
    choices = itertools.product(
        (1, 4), ("fp32", "tf32", "bf16"), (False, True), ("foreach", "fused", "fused 8-bit"), (1, 8), (False, True)
    )
    return [
        Setup(workers=w, precision=p, compiled=c, update=u, micro_batches=m, checkpointing=k)
        for w, p, c, u, m, k in choices
    ]


def test_every_setting_is_as_long_as_it_is_played() -> None:
    for setup in setups():
        built = stacked(GPT2, MACHINE, setup)
        stages = tuple(built.step.device_s.values())
        played = steps_player.play(num_steps=30, workers=1, batch_s=built.step.loader_s, queue=2, stages=stages)
        assert built.total_s == pytest.approx(played.pace_s(skip=15), rel=1e-6)


def test_parts_against_a_count_by_hand() -> None:
    built = stacked(GPT2, MACHINE, Setup(precision="bf16"))
    parameters, tokens = model_parameters(GPT2).total, 8 * 1024
    # 6N, and attention's few percent
    assert built.step.device_s["matmuls"] == pytest.approx(6 * parameters * tokens / 7e14, rel=0.06)
    assert built.step.device_s["update"] == pytest.approx(80 * parameters / 3.35e12)
    # Per layer and pass: twice 3 + 2 tensors of 1,600; 18 of 6,400 for GELU in eight operations; two bytes each.
    assert built.step.device_s["between matmuls"] == pytest.approx(
        3 * 48 * (10 * 1600 + 18 * 6400) * 2 * tokens / 3.35e12
    )


def test_a_switch_does_nothing_to_a_step_that_the_loader_paces() -> None:
    slow, fast = (stacked(GPT2, MACHINE, Setup(precision="bf16", compiled=compiled)) for compiled in (False, True))
    assert slow.pace == fast.pace == "loader"
    assert slow.total_s == fast.total_s
    assert slow.step.busy_s > fast.step.busy_s


def test_micro_batches_and_checkpointing_free_memory_and_dollars_follow_time() -> None:
    plain, pieces, again = (
        stacked(GPT2, MACHINE, Setup(workers=16, precision="bf16", **more))
        for more in ({}, {"micro_batches": 8}, {"checkpointing": True})
    )  # type: ignore[arg-type]
    assert pieces.memory_bytes < 0.6 * plain.memory_bytes
    assert pieces.total_s == pytest.approx(plain.total_s)
    assert again.memory_bytes < 0.6 * plain.memory_bytes
    assert again.dollars(tokens=1e9) / plain.dollars(tokens=1e9) == pytest.approx(again.total_s / plain.total_s)
    assert plain.dollars(tokens=plain.tokens_per_s * 3600) == pytest.approx(3)


def test_impossible_setups_are_refused() -> None:
    with pytest.raises(ValueError, match="micro_batches=3 must divide batch=8"):
        Setup(micro_batches=3)
    with pytest.raises(ValueError, match="precision='fp8' is not known"):
        Setup(precision="fp8")
    with pytest.raises(ValueError, match="as in GPT-2"):
        optimisation_stack.between_bytes(catalogue.model("llama-3-8b"), compiled=False, bytes_per_element=2)
