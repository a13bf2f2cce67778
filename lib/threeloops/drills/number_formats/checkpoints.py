"""A drill on a real mixture of experts in two formats: how many bits its average weight has."""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.number_formats.blocks import SOURCE_MX, block_form, written_bits
from threeloops.inner_loop.block_formats import BlockFormat
from threeloops.models import parameters
from threeloops.models.architecture import MoeMlp

TAUGHT = Taught("inner", "Number formats")

SOURCE_EXPERTS = "gpt-oss model card, 2025, arXiv:2508.10925 (experts in MXFP4, the rest in BF16)"
WIDE_BITS, SCALE_BITS = 16, 8


def _draw_average(rng: random.Random) -> Draw:
    key = rng.choice(("mixtral-8x7b", "mixtral-8x22b", "qwen3-235b-a22b", "gpt-oss-20b"))
    model = catalogued.model(key)
    mlp = model.groups[0][0].mlp
    assert isinstance(mlp, MoeMlp)
    shape = {
        "name": catalogued.model_name(key),
        "layers": model.num_layers,
        "hidden": model.hidden,
        "intermediate": mlp.expert.intermediate,
    }
    experts = {"experts": mlp.num_experts, "top_k": mlp.top_k, "total": parameters.model_parameters(model).total}
    return drawn(**shape, **experts, element_bits=4, block=rng.choice((16, 32)), wide_layers=rng.randrange(5, 12))


def _small_average(rng: random.Random) -> Draw:
    shape = {"layers": rng.choice((5, 6)), "hidden": 16, "intermediate": 2, "experts": 3, "top_k": 1}
    narrowed = shape["layers"] * shape["experts"] * 3 * shape["hidden"] * shape["intermediate"]
    return drawn(
        name="small",
        **shape,
        total=narrowed + 16 * rng.choice((20, 30)),
        element_bits=rng.choice((4, 6)),
        block=16,
        wide_layers=2,
    )


def _narrow(p: Draw, *, layers: int, experts: int, matrices: int = 3) -> int:
    """Weights in the block format."""
    return int(layers * experts * matrices * p.hidden * p.intermediate)


def _average(p: Draw, narrow: int, bits: float) -> float:
    return float((narrow * bits + (p.total - narrow) * WIDE_BITS) / p.total)


def _bits(p: Draw) -> float:
    form: BlockFormat = block_form(p)
    return form.bits_per_element


def _derive_average(p: Draw) -> Derivation:
    narrow = f"({p.layers} − {p.wide_layers}) × {p.experts} × 3 × {p.hidden} × {p.intermediate}"
    return Derivation(
        value=_average(p, _narrow(p, layers=p.layers - p.wide_layers, experts=p.experts), _bits(p)),
        formula="16 − narrow weights × (16 − element bits − scale bits / block) / all weights",
        substitution=f"16 − {narrow} × (16 − {p.element_bits} − {SCALE_BITS} / {p.block}) / {p.total}",
        source=f"{SOURCE_MX}; {SOURCE_EXPERTS}",
    )


def _count_average(p: Draw) -> float:
    """Pack every expert of the narrow layers, its matrices one behind the other; write everything else in 16 bits."""
    packed = left = 0
    for layer in range(p.layers):
        for _ in range(p.experts):
            expert = sum(p.hidden * p.intermediate for _ in ("gate", "up", "down"))
            if layer < p.layers - p.wide_layers:
                packed += written_bits(p, expert)
                left += expert
    return float((packed + sum(WIDE_BITS for _ in range(p.total - left))) / p.total)


AVERAGE = Drill(
    key="format-bits-of-a-model",
    taught=TAUGHT,
    title="The bits of an average weight",
    unit="",
    target_s=180,
    draw=_draw_average,
    small=_small_average,
    prompt=lambda p: (
        f"{p.name}, from its config: {p.layers} layers, hidden size {p.hidden}, {p.experts} experts per layer of which"
        f" {p.top_k} work on each token, each a gated block (three matrices) of intermediate size {p.intermediate};"
        f" {p.total:,} parameters in all. Experts are stored in a block format, {p.element_bits} bits per weight and an"
        f" 8-bit scale for every {p.block}, except in the last {p.wide_layers} layers, which keep theirs in BF16, like"
        " all other weights. How many bits does a weight of the model have on average?"
    ),
    derive=_derive_average,
    count=_count_average,
    prerequisites=("format-mixed-checkpoint",),
    slips=(
        Slip(
            "scale-per-weight",
            lambda p: _average(
                p, _narrow(p, layers=p.layers - p.wide_layers, experts=p.experts), p.element_bits + SCALE_BITS
            ),
        )
        | "You gave every weight a scale of its own. One is shared by a block.",
        Slip("all-layers", lambda p: _average(p, _narrow(p, layers=p.layers, experts=p.experts), _bits(p)))
        | "You made the experts of all layers narrow. The last ones stay wide.",
        Slip(
            "active-experts",
            lambda p: _average(p, _narrow(p, layers=p.layers - p.wide_layers, experts=p.top_k), _bits(p)),
        )
        | "You stored the experts that work on a token. All of them have to be there.",
        Slip(
            "two-matrices",
            lambda p: _average(p, _narrow(p, layers=p.layers - p.wide_layers, experts=p.experts, matrices=2), _bits(p)),
        )
        | "You gave an expert two matrices. A gated block has three.",
    ),
)

DRILLS = (AVERAGE,)
