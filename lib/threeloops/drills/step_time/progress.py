"""Drills on progress: days of training, tokens per second from a share of the peak, what a longer context and
recomputation cost.
"""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, changed, drawn
from threeloops.models import utilisation
from threeloops.training_loop.parallelism import step_time
from threeloops.units import billion, fmt_si, trillion

TAUGHT = Taught("training", "Why many GPUs")

SOURCE_SIX = (
    "Kaplan et al., 2020, arXiv:2001.08361, section 2.1; Chowdhery et al., PaLM, 2022, arXiv:2204.02311, section 4.1"
)
SOURCE_ATTENTION = (
    "Narayanan et al., 2021, arXiv:2104.04473, appendix; Chowdhery et al., PaLM, 2022, arXiv:2204.02311, appendix B"
)
SOURCE_RECOMPUTE = "Korthikanti et al., 2022, arXiv:2205.05198, section 5"
PARTS = ("a100-sxm4-80gb", "h100-sxm5")

# --- days of training ----------------------------------------------------------------------------


def _days(p: Draw, *, per_parameter: float, peak: float) -> float:
    rate = p.percent / 100 * peak / (per_parameter * p.parameters)
    return step_time.training_s(tokens=p.tokens, tokens_per_gpu_s=rate, num_gpus=p.gpus)


def _draw_days(rng: random.Random) -> Draw:
    part = catalogued.part(rng.choice(PARTS))
    return drawn(
        part=part.name,
        peak=part.peak_flops_per_s("bf16"),
        sparse=part.sparse_peak_flops_per_s("bf16"),
        parameters=rng.randrange(7, 140) * billion,
        tokens=rng.randrange(3, 160) / 10 * trillion,
        gpus=rng.randrange(256, 4200, 64),
        percent=rng.randrange(36, 47),
    )


def _count_days(p: Draw) -> float:
    """Every token meets every weight: a multiplication and an addition forward, two of each backward."""
    operations = 0
    for _ in range(p.tokens):
        for _ in range(p.parameters):
            operations += 2 + 2 * 2
    return float(operations / sum(p.peak * p.percent / 100 for _ in range(p.gpus)))


DAYS = Drill(
    key="step-days-of-training",
    taught=TAUGHT,
    title="Days of training",
    unit="s",
    target_s=120,
    draw=_draw_days,
    small=lambda rng: changed(
        _draw_days(rng), parameters=rng.randrange(20, 60), tokens=rng.randrange(30, 90), gpus=rng.randrange(2, 7)
    ),
    prompt=lambda p: (
        f"A dense model of {p.parameters / billion:g} billion parameters is to be trained on {p.tokens / trillion:g}"
        f" trillion tokens with {p.gpus} {p.part}s in bf16 ({fmt_si(p.peak, 'FLOP/s')} dense, twice that with 2:4"
        " sparsity)."
        f" Past runs reached an MFU of {p.percent} %, all pauses included. By the rule of 6 FLOPs per parameter and"
        " token, how long will it take?"
    ),
    derive=lambda p: Derivation(
        value=_days(p, per_parameter=6, peak=p.peak),
        formula="6 × parameters × tokens / (GPUs × peak × MFU)",
        substitution=f"6 × {p.parameters} × {p.tokens:.15g} / ({p.gpus} × {p.peak:.15g} × {p.percent} / 100)",
        source=SOURCE_SIX,
    ),
    count=_count_days,
    slips=(
        Slip("forward-only", lambda p: _days(p, per_parameter=2, peak=p.peak))
        | "That is the forward pass. Training goes back through the model, too.",
        Slip("one-gradient", lambda p: _days(p, per_parameter=4, peak=p.peak))
        | "Backward has two matmuls per weight: for its input, and for itself.",
        Slip("sparse-peak", lambda p: _days(p, per_parameter=6, peak=p.sparse))
        | "You took the peak with sparsity. An MFU refers to the dense one.",
        Slip("all-of-the-peak", lambda p: _days(p, per_parameter=6, peak=p.peak) * p.percent / 100)
        | "You let the GPUs run at their peak.",
        Slip("one-gpu", lambda p: _days(p, per_parameter=6, peak=p.peak) * p.gpus) | "You trained on one GPU.",
    ),
)

# --- the same model, a longer context ------------------------------------------------------------


def _remaining(p: Draw, *, heads: int, causal: str = "half") -> float:
    """Tokens per second in the longer context, at the same FLOP/s."""
    before, after = (
        utilisation.dense_flops_per_token(
            num_parameters=p.parameters,
            num_layers=p.layers,
            num_heads=heads,
            head_dim=p.head_dim,
            sequence=sequence,
            causal=causal,
        )
        for sequence in (p.short, p.long)
    )
    return float(p.rate * before / after)


def _derive_context(p: Draw) -> Derivation:
    def flops(sequence: int) -> str:
        return f"(6 × {p.parameters} + 6 × {p.layers} × {p.heads} × {p.head_dim} × {sequence})"

    return Derivation(
        value=_remaining(p, heads=p.heads),
        formula=(
            "rate × FLOPs per token before / after, each 6 × parameters + 6 × layers × heads × head size × sequence"
        ),
        substitution=f"{p.rate} × {flops(p.short)} / {flops(p.long)}",
        source=SOURCE_ATTENTION,
    )


def _count_context(p: Draw) -> float:
    """FLOPs of one sequence: weights for each token; a query meets half of the sequence on average, in two products,
    forward once and backward twice.
    """

    def sequence_flops(length: int) -> int:
        total = 0
        for _ in range(length):
            total += 6 * p.parameters
            for _ in range(p.layers * p.heads):
                met = length / 2
                total += int(3 * 2 * 2 * met * p.head_dim)
        return total

    return float(p.rate * (sequence_flops(p.short) / p.short) / (sequence_flops(p.long) / p.long))


CONTEXT = Drill(
    key="step-longer-context",
    taught=TAUGHT,
    title="The price of a longer context",
    unit="token/s",
    target_s=180,
    apart=1.06,
    draw=lambda rng: drawn(
        parameters=rng.randrange(5, 40) * billion,
        layers=rng.randrange(28, 64),
        heads=rng.randrange(28, 60, 4),
        head_dim=128,
        short=rng.choice((4096, 8192)),
        long=rng.choice((49_152, 65_536, 98_304)),
        rate=rng.randrange(800, 9000, 100),
    ),
    small=lambda rng: drawn(
        parameters=rng.randrange(2000, 9000),
        layers=rng.randrange(2, 5),
        heads=rng.randrange(3, 6),
        head_dim=4,
        short=rng.choice((8, 12)),
        long=rng.choice((50, 70)),
        rate=rng.randrange(800, 9000, 100),
    ),
    prompt=lambda p: (
        f"A dense model has {p.parameters / billion:g} billion parameters in its matrices, {p.layers} layers, {p.heads}"
        f" query heads of size {p.head_dim}. With sequences of {p.short:,} tokens a GPU trains {p.rate:,} tokens/s. The"
        f" context is raised to {p.long:,} tokens, at the same share of the peak. How many tokens/s remain? (Causal"
        " attention, charged at half of all pairs, in both cases.)"
    ),
    derive=_derive_context,
    count=_count_context,
    prerequisites=("roofline-training-flops",),
    slips=(
        Slip("attention-is-free", lambda p: p.rate)
        | "You left the rate as it was. What does a token do with all the earlier ones?",
        Slip("everything-grows", lambda p: p.rate * p.short / p.long)
        | "You let all work per token grow. The weights are the same for every length.",
        Slip("all-pairs", lambda p: _remaining(p, heads=p.heads, causal="full"))
        | "You charged all pairs. The question says how causal attention is charged.",
        Slip("one-head", lambda p: _remaining(p, heads=1)) | "You counted one head per layer.",
    ),
)

# --- recomputation is not progress ---------------------------------------------------------------


def _executed(p: Draw) -> float:
    """What runs per layer, in forward passes: one forward, two backward, and one more in some of the layers."""
    return float(3 + p.again / p.layers)


def _draw_recompute(rng: random.Random) -> Draw:
    layers = rng.randrange(28, 100, 4)
    return drawn(layers=layers, again=rng.randrange(layers // 4, layers - 3), percent=rng.randrange(38, 62))


def _count_recompute(p: Draw) -> float:
    """Layer by layer, in forward passes: one forward, two backward, and one more where nothing was kept."""
    model = executed = 0
    for layer in range(p.layers):
        model += 1 + 2
        executed += 1 + 2 + (1 if layer < p.again else 0)
    return float(p.percent / 100 * model / executed)


RECOMPUTE = Drill(
    key="step-mfu-from-hfu",
    taught=TAUGHT,
    title="Work done twice is not progress",
    unit="",
    target_s=90,
    apart=1.06,
    draw=_draw_recompute,
    small=_draw_recompute,
    prompt=lambda p: (
        f"A profiler reports that a training run executes {p.percent} % of the GPUs' dense peak (HFU). The model has"
        f" {p.layers} equal layers; in {p.again} of them the whole forward pass is run again during the backward pass,"
        " to save memory. Backward is twice the work of forward; everything outside the layers is neglected. What is"
        " the MFU?"
    ),
    derive=lambda p: Derivation(
        value=utilisation.mfu_from_hfu(hfu=p.percent / 100, recomputed_share=p.again / p.layers),
        formula="HFU × 3 / (3 + recomputed layers / layers)",
        substitution=f"{p.percent} / 100 × 3 / (3 + {p.again} / {p.layers})",
        source=SOURCE_RECOMPUTE,
    ),
    count=_count_recompute,
    slips=(
        Slip("same", lambda p: p.percent / 100)
        | "You took what the device executes for progress. Some of it is done twice.",
        Slip("wrong-way", lambda p: p.percent / 100 * _executed(p) / 3)
        | "You went from MFU to HFU. Which of the two is larger?",
        Slip("all-layers", lambda p: p.percent / 100 * 3 / 4) | "You recomputed all layers. Read again how many do.",
        Slip("half", lambda p: p.percent / 100 * (1 - p.again / p.layers / 2))
        | "How much is one forward pass, against forward and backward together?",
    ),
)

DRILLS = (DAYS, CONTEXT, RECOMPUTE)
