"""Errors to spot under the roofline: a product, and the scores of attention."""

import random
from typing import Any

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw, drawn
from threeloops.drills.roofline.intensity import SOURCE_GEMM, dense
from threeloops.operations import kernels, roofline
from threeloops.room.kinds.spots.spot import Line, Misstep, Worked
from threeloops.units import fmt, fmt_si

# --- is this product compute-bound? --------------------------------------------------------------

SPARSE_PARTS = ("h100-sxm5", "a100-sxm4-80gb", "b200-hgx")


def _roofs(key: str) -> dict[str, Any]:
    part = catalogued.part(key)
    return dense(key) | {"sparse": part.sparse_peak_flops_per_s("bf16")}


def _draw_product(rng: random.Random) -> Draw:
    return drawn(
        **_roofs(rng.choice(SPARSE_PARTS)), side=rng.choice((2048, 3072, 4096, 6144, 8192)), bytes_per_element=2
    )


def _product_answer(p: Draw) -> float:
    product = kernels.gemm(m=p.side, n=p.side, k=p.side, bytes_per_element=p.bytes_per_element)
    return product.arithmetic_intensity / roofline.ridge_point(peak_flops_per_s=p.peak, memory_bytes_per_s=p.memory)


PRODUCT = Worked(
    key="spot-product-intensity",
    title="A colleague's matmul",
    topic="roofline",
    loop="inner",
    section="Roofline",
    target_s=75,
    draw=_draw_product,
    prompt=lambda p: (
        f"Two square matrices of {p.side:,} by {p.side:,} in BF16 (2 bytes) are multiplied on an {p.part}, each matrix"
        " moved once. How far above or below the ridge point is that, in dense BF16?"
    ),
    lines=(
        Line(
            name="flops",
            value=lambda v: 2 * v.side**3,
            text=lambda v: (
                f"FLOPs: {v.side:,}² results of {v.side:,} multiply-adds, 2 FLOPs each: {fmt_si(v.flops, 'FLOP')}"
            ),
        ),
        Line(
            name="elements",
            value=lambda v: 3 * v.side**2,
            text=lambda v: f"Elements moved: two factors and the result, 3 × {v.side:,}² = {v.elements:,}",
        ),
        Line(
            name="moved",
            value=lambda v: v.elements * v.bytes_per_element,
            text=lambda v: f"Bytes moved: {v.elements:,} × {v.bytes_per_element} = {fmt_si(v.moved, 'B')}",
        ),
        Line(
            name="intensity",
            value=lambda v: v.flops / v.moved,
            text=lambda v: f"Arithmetic intensity: FLOPs / bytes = {fmt(v.intensity, 'FLOP/B')}",
        ),
        Line(
            name="ridge",
            value=lambda v: v.peak / v.memory,
            text=lambda v: (
                f"Ridge point: {fmt_si(v.peak, 'FLOP/s')} / {fmt_si(v.memory, 'B/s')} = {fmt(v.ridge, 'FLOP/B')}"
            ),
        ),
        Line(
            name="ratio",
            value=lambda v: v.intensity / v.ridge,
            text=lambda v: f"Intensity / ridge point = {v.ratio:.3g}",
        ),
    ),
    missteps=(
        Misstep(
            key="multiply-adds",
            line="flops",
            value=lambda v: v.side**3,
            text=lambda v: f"FLOPs: {v.side:,}² results of {v.side:,} multiply-adds: {fmt_si(v.flops, 'FLOP')}",
            story="A multiply-add is two operations, and the peak on the datasheet counts both.",
        ),
        Misstep(
            key="result-forgotten",
            line="elements",
            value=lambda v: 2 * v.side**2,
            text=lambda v: f"Elements moved: two matrices, 2 × {v.side:,}² = {v.elements:,}",
            story="The result has to be written too.",
        ),
        Misstep(
            key="elements-as-bytes",
            line="moved",
            value=lambda v: v.elements,
            text=lambda v: f"Bytes moved: {fmt_si(v.moved, 'B')}",
            story=(
                "Elements were taken for bytes. In BF16 an element is two of them; the intensity comes out twice too"
                " high."
            ),
        ),
        Misstep(
            key="sparse-peak",
            line="ridge",
            value=lambda v: v.sparse / v.memory,
            text=lambda v: (
                f"Ridge point: {fmt_si(v.sparse, 'FLOP/s')} / {fmt_si(v.memory, 'B/s')} = {fmt(v.ridge, 'FLOP/B')}"
            ),
            story="That is the peak with 2:4 sparsity. Dense matrices reach half of it.",
        ),
    ),
    answer=_product_answer,
    source=SOURCE_GEMM,
    prerequisites=("roofline-gemm-intensity", "roofline-ridge-point"),
)

# --- attention, and the heads nobody counted -----------------------------------------------------


def _draw_scores(rng: random.Random) -> Draw:
    heads, head_dim = rng.choice(((32, 128), (25, 64), (40, 128), (20, 64)))
    return drawn(
        **_roofs(rng.choice(SPARSE_PARTS)),
        heads=heads,
        head_dim=head_dim,
        tokens=rng.choice((2048, 4096, 6144, 8192)),
        bytes_per_element=2,
    )


def _scores_answer(p: Draw) -> float:
    drill = DRILLS["roofline-attention-scores"]
    return drill.derive(drawn(**vars(p), name="drawn", batch=1)).value / roofline.ridge_point(
        peak_flops_per_s=p.peak, memory_bytes_per_s=p.memory
    )


SCORES = Worked(
    key="spot-attention-scores",
    title="A colleague's attention scores",
    topic="attention_io",
    loop="inner",
    section="Fusion and FlashAttention",
    target_s=100,
    draw=_draw_scores,
    prompt=lambda p: (
        f"Attention with {p.heads} heads, {p.head_dim} wide, reads one prompt of {p.tokens:,} tokens in BF16 on an"
        f" {p.part}. Its first kernel reads queries and keys and writes every score to memory, masked ones too. How far"
        " above or below the ridge point is this kernel?"
    ),
    lines=(
        Line(
            name="flops",
            value=lambda v: 2 * v.heads * v.tokens**2 * v.head_dim,
            text=lambda v: f"FLOPs: 2 × {v.heads} heads × {v.tokens:,}² × {v.head_dim} = {fmt_si(v.flops, 'FLOP')}",
        ),
        Line(
            name="inputs",
            value=lambda v: 2 * v.heads * v.tokens * v.head_dim,
            text=lambda v: f"Queries and keys: 2 × {v.heads} × {v.tokens:,} × {v.head_dim} = {v.inputs:,} elements",
        ),
        Line(
            name="scores",
            value=lambda v: v.heads * v.tokens**2,
            text=lambda v: f"Scores: {v.heads} × {v.tokens:,}² = {v.scores:,} elements",
        ),
        Line(
            name="moved",
            value=lambda v: (v.inputs + v.scores) * v.bytes_per_element,
            text=lambda v: f"Bytes moved: both, {v.bytes_per_element} bytes each = {fmt_si(v.moved, 'B')}",
        ),
        Line(
            name="intensity",
            value=lambda v: v.flops / v.moved,
            text=lambda v: f"Arithmetic intensity: {fmt(v.intensity, 'FLOP/B')}",
        ),
        Line(
            name="ratio",
            value=lambda v: v.intensity * v.memory / v.peak,
            text=lambda v: (
                f"Ridge point {fmt_si(v.peak, 'FLOP/s')} / {fmt_si(v.memory, 'B/s')}; intensity / ridge point ="
                f" {v.ratio:.3g}"
            ),
        ),
    ),
    missteps=(
        Misstep(
            key="heads-ignored",
            line="scores",
            value=lambda v: v.tokens**2,
            text=lambda v: f"Scores: every token with every token, {v.tokens:,}² = {v.scores:,} elements",
            story="Every head has scores of its own. Counted once, attention looks compute-bound, and it is not.",
        ),
        Misstep(
            key="multiply-adds",
            line="flops",
            value=lambda v: v.heads * v.tokens**2 * v.head_dim,
            text=lambda v: f"FLOPs: {v.heads} heads × {v.tokens:,}² × {v.head_dim} = {fmt_si(v.flops, 'FLOP')}",
            story="A multiply-add is two operations.",
        ),
        Misstep(
            key="scores-not-written",
            line="moved",
            value=lambda v: v.inputs * v.bytes_per_element,
            text=lambda v: f"Bytes moved: queries and keys, {v.bytes_per_element} bytes each = {fmt_si(v.moved, 'B')}",
            story="The scores go to memory. Only a fused kernel keeps them on the chip.",
        ),
        Misstep(
            key="sparse-peak",
            line="ratio",
            value=lambda v: v.intensity * v.memory / v.sparse,
            text=lambda v: (
                f"Ridge point {fmt_si(v.sparse, 'FLOP/s')} / {fmt_si(v.memory, 'B/s')}; intensity / ridge point ="
                f" {v.ratio:.3g}"
            ),
            story="That is the peak with 2:4 sparsity. Scores are dense.",
        ),
    ),
    answer=_scores_answer,
    source="Dao et al., FlashAttention, 2022, arXiv:2205.14135, section 2.2",
    prerequisites=("roofline-attention-scores",),
)

WORKED = (PRODUCT, SCORES)
