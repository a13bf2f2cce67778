"""Drills on training steps that somebody printed: what share of a peak they are, and by which convention."""

import functools
import random
from itertools import product
from typing import TYPE_CHECKING

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, changed, drawn
from threeloops.drills.engine.phrasing import billions, tera
from threeloops.drills.measured.rows import gpu_name, printed_steps
from threeloops.models.architecture import Attention, Model
from threeloops.models.model_flops import layer_matmul_parameters
from threeloops.models.utilisation import dense_flops_per_token
from threeloops.training_loop.parallelism import step_time
from threeloops.units import fmt_si

if TYPE_CHECKING:
    from threeloops.training_loop.parallelism.published_steps import PublishedStep

WHY = Taught("training", "Why many GPUs")
STACK = Taught("training", "The optimisation stack")

SOURCE_MFU = "Chowdhery et al., PaLM, 2022, arXiv:2204.02311, section 4.1 and appendix B"


def multiplied(model: Model) -> float:
    """Weights that multiply each token, the head's included, with three digits as a question says them."""
    layers = sum(count * layer_matmul_parameters(layer, hidden=model.hidden) for layer, count in model.groups)
    return float(f"{layers + model.hidden * model.vocab:.3g}")


def printed_tokens(row: "PublishedStep") -> int:
    """Tokens per second and GPU, whole as tables print them."""
    tokens = step_time.tokens_per_gpu_s(tokens=row.job.tokens, step_s=row.measured_s, num_gpus=row.cluster.num_gpus)
    return round(tokens)


def named(row: "PublishedStep") -> str:
    """A model in a sentence: the catalogue's name, or what a GPT without one looks like."""
    name = row.model.name
    return f"a {name}" if name.startswith("GPT of") else catalogued.model_name(name)


def cited(row: "PublishedStep") -> str:
    """Where a row was printed."""
    return f"{row.source} ({row.key}), read in 2026"


@functools.cache
def plain_steps() -> "tuple[PublishedStep, ...]":
    """Dense models whose attention heads are all alike, trained in BF16 on one copy a GPU."""
    return tuple(
        row
        for row in printed_steps()
        if row.format == "bf16" and row.dense and row.layout.tp == row.layout.pp == 1 and len(row.model.groups) == 1
    )


def _numbers(row: "PublishedStep") -> dict[str, object]:
    attention = row.model.groups[0][0].attention
    assert isinstance(attention, Attention)  # of a dense model
    part = catalogued.part(row.part)
    return {
        "publisher": row.publisher,
        "model": named(row),
        "parameters": multiplied(row.model),
        "layers": row.model.num_layers,
        "heads": attention.num_heads,
        "head_dim": attention.head_dim,
        "gpu": gpu_name(row.part),
        "gpus": row.cluster.num_gpus,
        "peak": part.peak_flops_per_s("bf16"),
        "row": cited(row),
    }


# --- a long sequence's MFU -------------------------------------------------------------------------


def _draw_mfu(rng: random.Random) -> Draw:
    row = rng.choice(plain_steps())
    return drawn(**_numbers(row), sequence=row.job.sequence, tokens_s=printed_tokens(row))


def _small_mfu(rng: random.Random) -> Draw:
    return drawn(
        parameters=rng.randrange(50, 200),
        layers=rng.randrange(2, 5),
        heads=rng.randrange(2, 4),
        head_dim=rng.randrange(3, 6),
        sequence=rng.randrange(6, 20),
        tokens_s=rng.randrange(21, 99),
        peak=rng.randrange(300_000, 900_000),
        row="drawn in 2026",
    )


def _per_token(p: Draw, *, sequence: int, causal: str = "half") -> float:
    return dense_flops_per_token(
        num_parameters=p.parameters,
        num_layers=p.layers,
        num_heads=p.heads,
        head_dim=p.head_dim,
        sequence=sequence,
        causal=causal,
    )


def _mfu(p: Draw, causal: str = "half") -> float:
    flops = _per_token(p, sequence=p.sequence, causal=causal)
    return step_time.mfu_of_tokens(flops_per_token=flops, tokens_per_gpu_s=p.tokens_s, peak_flops_per_s=p.peak)


def _derive_mfu(p: Draw) -> Derivation:
    flops = f"(6 × {p.parameters!r} + 12 × {p.layers} × {p.heads} × {p.head_dim} × {p.sequence} / 2)"
    return Derivation(
        value=_mfu(p),
        formula="(6 × weights + 12 × layers × heads × head dim × sequence / 2) × tokens/s of a GPU / dense peak",
        substitution=f"{flops} × {p.tokens_s!r} / {tera(p.peak)}",
        source=f"{SOURCE_MFU}; {p.row}",
    )


def counted_flops(p: Draw, sequence: int) -> float:
    """Of one token on average: each weight forward and in two gradients, each pair of positions that a head may"
    " see."""
    total = 0.0
    for position in range(sequence):
        total += sum(3 * 2 for _ in range(p.parameters))
        for _, _, seen in product(range(p.layers), range(p.heads), range(position + 1)):
            pair = 3 * (2 * p.head_dim + 2 * p.head_dim)  # score and value, forward and twice backward
            total += pair / 2 if seen == position else pair
    return total / sequence


MFU = Drill(
    key="measured-mfu-long-sequences",
    taught=WHY,
    title="An MFU with attention in it",
    unit="",
    target_s=130,
    draw=_draw_mfu,
    small=_small_mfu,
    prompt=lambda p: (
        f"{p.publisher} prints {p.tokens_s:,} tokens per second and GPU for {p.model}, on {p.gpus} GPUs"
        f" ({p.gpu}), in BF16, with sequences of {p.sequence:,} tokens. Its matrices, the head's included, have"
        f" {billions(p.parameters)} weights; {p.layers} layers of {p.heads} heads, {p.head_dim} wide. The dense peak"
        " in"
        f" BF16 is {fmt_si(p.peak, 'FLOP/s')}. Count 6 FLOPs per weight and token, and causal attention at half of"
        " the square. What is the MFU?"
    ),
    derive=_derive_mfu,
    count=lambda p: sum(counted_flops(p, p.sequence) for _ in range(p.tokens_s)) / float(p.peak),
    slips=(
        Slip("no-attention", lambda p: _mfu(p) * 6 * p.parameters / _per_token(p, sequence=p.sequence))
        | "You counted 6 per weight and nothing else. In sequences this long, attention's matmuls matter.",
        Slip("full-square", lambda p: _mfu(p, "full"))
        | "You charged the whole square of attention. The question counts what the causal mask leaves.",
        Slip("forward-only", lambda p: _mfu(p) / 3)
        | "You counted a forward pass: 2 per weight. The backward pass is twice as much again.",
        Slip("sparse-peak", lambda p: _mfu(p) / 2) | "You doubled the peak, for a sparsity that this model has not.",
        Slip("recomputed", lambda p: _mfu(p) * 4 / 3)
        | "You counted a forward pass twice. MFU leaves recomputation out; that would be HFU.",
    ),
)

# --- the same model at another length --------------------------------------------------------------


@functools.cache
def _lengths() -> "tuple[tuple[PublishedStep, PublishedStep], ...]":
    """Two lengths of one model on as many GPUs of one kind."""
    rows = plain_steps()
    return tuple(
        (short, long)
        for short in rows
        for long in rows
        if (short.model.groups, short.part, short.cluster.num_gpus)
        == (long.model.groups, long.part, long.cluster.num_gpus)
        and short.job.sequence < long.job.sequence
    )


def _draw_lengths(rng: random.Random) -> Draw:
    short, long = rng.choice(_lengths())
    return drawn(
        **_numbers(short),
        short=short.job.sequence,
        long=long.job.sequence,
        short_s=printed_tokens(short),
        long_s=printed_tokens(long),
        row_long=long.key,
    )


def _ratio(p: Draw, causal: str = "half") -> float:
    long, short = (_per_token(p, sequence=one, causal=causal) for one in (p.long, p.short))
    return float(p.long_s * long / (p.short_s * short))


def _derive_lengths(p: Draw) -> Derivation:
    flops = [f"(6 × {p.parameters!r} + 6 × {p.layers} × {p.heads} × {p.head_dim} × {one})" for one in (p.long, p.short)]
    return Derivation(
        value=_ratio(p),
        formula=(
            "tokens/s × FLOPs per token at the long length / the same at the short one; per token 6 × weights + 6 ×"
            " layers × heads × head dim × sequence"
        ),
        substitution=f"{p.long_s!r} × {flops[0]} / ({p.short_s!r} × {flops[1]})",
        source=f"{SOURCE_MFU}; {p.row}",
    )


def _count_lengths(p: Draw) -> float:
    long, short = (
        sum(counted_flops(p, sequence) for _ in range(tokens))
        for sequence, tokens in ((p.long, p.long_s), (p.short, p.short_s))
    )
    return float(long / short)


LENGTHS = Drill(
    key="measured-two-lengths",
    taught=STACK,
    title="The MFU at two lengths of sequence",
    unit="",
    target_s=170,
    draw=_draw_lengths,
    small=lambda rng: changed(
        _small_mfu(rng),
        short=rng.randrange(4, 8),
        long=rng.randrange(12, 24),
        short_s=rng.randrange(21, 99),
        long_s=rng.randrange(11, 60),
    ),
    prompt=lambda p: (
        f"{p.publisher} trained {p.model}, on {p.gpus} GPUs ({p.gpu}) with two lengths of sequence:"
        f" {p.short_s:,} tokens per second and GPU at {p.short:,} tokens, {p.long_s:,} at {p.long:,}. Its matrices"
        f" have {billions(p.parameters)} weights; {p.layers} layers of {p.heads} heads, {p.head_dim} wide. Count 6"
        " FLOPs per weight and token, and causal attention at half of the square. How many times the MFU of the short"
        " sequences is the MFU of the long ones?"
    ),
    derive=_derive_lengths,
    count=_count_lengths,
    prerequisites=("measured-mfu-long-sequences",),
    slips=(
        Slip("tokens-alone", lambda p: p.long_s / p.short_s)
        | "You compared tokens. A token of a longer sequence is more work.",
        Slip("full-square", lambda p: _ratio(p, "full"))
        | "You charged the whole square of attention. The question counts what the causal mask leaves.",
        Slip("work-alone", lambda p: _ratio(p) * p.short_s / p.long_s)
        | "That is how much more work a token is. Fewer of them were done in a second, too.",
        Slip("upside-down", lambda p: 1 / _ratio(p))
        | "That is the short sequences' MFU over the long ones'. Turn it over.",
    ),
)

DRILLS = (MFU, LENGTHS)
