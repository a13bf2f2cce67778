"""Drills on counting the work of single kernels: attention that writes its scores, convolutions in groups."""

import random
from itertools import product

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.roofline.intensity import counted_product
from threeloops.models.architecture import Attention
from threeloops.operations import kernels

TAUGHT = Taught("inner", "Roofline")

SOURCE_SCORES = (
    "Dao et al., FlashAttention, 2022, arXiv:2205.14135, section 2.2 (standard attention writes its scores to memory)"
)
SOURCE_CONV = (
    "Dumoulin and Visin, 2016, arXiv:1603.07285 (output size); Krizhevsky et al., 2012 (convolutions in groups)"
)

# --- scores that leave the chip ------------------------------------------------------------------


def _draw_scores(rng: random.Random) -> Draw:
    key = rng.choice(("llama-2-7b", "llama-2-13b", "phi-3-mini"))
    heads = catalogued.model(key).groups[0][0].attention
    assert isinstance(heads, Attention)
    shape = {"heads": heads.num_heads, "head_dim": heads.head_dim, "batch": rng.choice((3, 4, 6))}
    return drawn(name=catalogued.model_name(key), **shape, tokens=rng.randrange(1200, 2450, 50), bytes_per_element=2)


def _small_scores(rng: random.Random) -> Draw:
    shape = {"heads": rng.choice((3, 5)), "head_dim": rng.choice((4, 6)), "batch": rng.choice((2, 3))}
    return drawn(name="drawn", **shape, tokens=rng.choice((7, 9)), bytes_per_element=2)


def _derive_scores(p: Draw) -> Derivation:
    parts = kernels.unfused_attention(
        batch=p.batch,
        num_heads=p.heads,
        num_kv_heads=p.heads,
        head_dim=p.head_dim,
        query_tokens=p.tokens,
        context_tokens=p.tokens,
        causal="full",
        bytes_per_element=p.bytes_per_element,
    )
    return Derivation(
        value=parts.scores.arithmetic_intensity,
        formula=(
            "2 × tokens² × head dim / ((2 × tokens × head dim + tokens²) × bytes per element), for one head as for all"
        ),
        substitution=(
            f"2 × {p.tokens}² × {p.head_dim} / ((2 × {p.tokens} × {p.head_dim} + {p.tokens}²) × {p.bytes_per_element})"
        ),
        source=SOURCE_SCORES,
    )


def _count_scores(p: Draw) -> float:
    """Form every head's scores, request by request, on a machine that counts."""
    products = [counted_product(m=p.tokens, k=p.head_dim, n=p.tokens) for _ in range(p.batch * p.heads)]
    return sum(flops for flops, _ in products) / sum(moved_bytes for _, moved_bytes in products)


SCORES = Drill(
    key="roofline-attention-scores",
    taught=TAUGHT,
    title="One wide matmul, or many thin ones",
    unit="FLOP/B",
    target_s=120,
    draw=_draw_scores,
    small=_small_scores,
    prompt=lambda p: (
        f"{p.name} has {p.heads} attention heads, {p.head_dim} wide. It reads {p.batch} prompts of {p.tokens:,} tokens"
        " each, in 16 bits. Attention is not fused: a first kernel reads queries and keys and writes the scores of"
        " every token against every token to memory, masked ones too. What is the arithmetic intensity of this kernel?"
    ),
    derive=_derive_scores,
    count=_count_scores,
    prerequisites=("roofline-gemm-intensity",),
    slips=(
        Slip(
            "heads-merged",
            lambda p: (
                2 * p.tokens * p.heads * p.head_dim / ((2 * p.heads * p.head_dim + p.tokens) * p.bytes_per_element)
            ),
        )
        | "You made one matmul over the model's whole width, with one matrix of scores. Each head writes a"
        " matrix of its own.",
        Slip("scores-forgotten", lambda p: 2 * p.tokens * p.head_dim / (2 * p.head_dim * p.bytes_per_element))
        | "You read queries and keys and wrote nothing. The scores are what this kernel is for, and there are"
        " many.",
        Slip("scores-only", lambda p: 2 * p.head_dim / p.bytes_per_element)
        | "You moved the scores alone. That is where it ends for a very long prompt; queries and keys still count"
        " in this one.",
        Slip("multiply-adds", lambda p: p.tokens * p.head_dim / ((2 * p.head_dim + p.tokens) * p.bytes_per_element))
        | "You counted multiply-adds. Each is a multiplication and an addition.",
        Slip("elements", lambda p: 2 * p.tokens * p.head_dim / (2 * p.head_dim + p.tokens))
        | "You divided by elements. Memory is paid by the byte.",
    ),
)

# --- convolutions in groups ----------------------------------------------------------------------


def _draw_conv(rng: random.Random) -> Draw:
    groups, height, width = rng.choice((6, 12)), *rng.choice(((160, 240), (120, 200), (272, 480)))
    channels = {"in_channels": groups * rng.choice((8, 16, 24)), "out_channels": groups * rng.choice((20, 28))}
    return drawn(cameras=rng.choice((5, 7)), groups=groups, **channels, height=height, width=width, kernel=3, stride=2)


def _derive_conv(p: Draw) -> Derivation:
    work = kernels.conv2d(
        batch=p.cameras,
        in_channels=p.in_channels,
        out_channels=p.out_channels,
        height=p.height,
        width=p.width,
        kernel=p.kernel,
        stride=p.stride,
        padding=p.kernel // 2,
        groups=p.groups,
        bytes_per_element=2,
    )
    outputs = f"{p.cameras} × {p.out_channels} × {p.height // p.stride} × {p.width // p.stride}"
    return Derivation(
        value=work.flops,
        formula="2 × images × output channels × output height × output width × kernel² × input channels / groups",
        substitution=f"2 × {outputs} × {p.kernel}² × {p.in_channels} / {p.groups}",
        source=SOURCE_CONV,
    )


def _count_conv(p: Draw) -> float:
    """Slide the kernel over every image and multiply, one value at a time, padding included."""
    flops, edge = 0, p.kernel // 2
    rows, columns = (range(-edge, size + edge - p.kernel + 1, p.stride) for size in (p.height, p.width))
    for _camera, _row, _column, out_channel in product(range(p.cameras), rows, columns, range(p.out_channels)):
        group = out_channel * p.groups // p.out_channels
        for in_channel, _tap in product(range(p.in_channels), range(p.kernel**2)):
            if in_channel * p.groups // p.in_channels == group:
                flops += 2
    return float(flops)


def _outputs(p: Draw) -> float:
    return float(p.cameras * p.out_channels * (p.height // p.stride) * (p.width // p.stride))


CONV = Drill(
    key="roofline-grouped-convolution",
    taught=TAUGHT,
    title="Filters that see a part of the channels",
    unit="FLOP",
    target_s=120,
    draw=_draw_conv,
    small=lambda rng: drawn(
        cameras=2,
        groups=3,
        in_channels=6,
        out_channels=rng.choice((3, 9)),
        height=rng.choice((6, 8)),
        width=10,
        kernel=3,
        stride=2,
    ),
    prompt=lambda p: (
        f"{p.cameras} cameras each deliver a feature map of {p.in_channels} channels, {p.height} × {p.width}. A"
        f" {p.kernel} × {p.kernel} convolution with stride {p.stride} and padding {p.kernel // 2} makes"
        f" {p.out_channels} channels of it, in {p.groups} groups. How many FLOPs is that for all cameras,"
        " multiplications with the padding included?"
    ),
    derive=_derive_conv,
    count=_count_conv,
    slips=(
        Slip("groups-ignored", lambda p: 2 * _outputs(p) * p.kernel**2 * p.in_channels)
        | "You let every filter see every channel. In a grouped convolution it sees those of its own group.",
        Slip("groups-twice", lambda p: 2 * _outputs(p) * p.kernel**2 * p.in_channels / p.groups**2)
        | "You divided by the groups on both sides. Each filter sees fewer channels, but all output channels are"
        " still made.",
        Slip("multiply-adds", lambda p: _outputs(p) * p.kernel**2 * p.in_channels / p.groups)
        | "You counted multiply-adds, as many vision papers do under the name of FLOPs. Each is a multiplication"
        " and an addition.",
        Slip("stride-ignored", lambda p: 2 * _outputs(p) * p.stride**2 * p.kernel**2 * p.in_channels / p.groups)
        | "You placed the kernel on every pixel. It steps further than that, down and across.",
        Slip("kernel-side", lambda p: 2 * _outputs(p) * p.kernel * p.in_channels / p.groups)
        | "You took one side of the kernel. It covers a square.",
        Slip("one-camera", lambda p: 2 * _outputs(p) / p.cameras * p.kernel**2 * p.in_channels / p.groups)
        | "That is one camera. All of them run through the network.",
    ),
    function=AsFunction(
        takes=("cameras", "groups", "in_channels", "out_channels", "height", "width", "kernel", "stride"),
        limit={"height": 135, "width": 241},
        limit_case="a map whose height and width are odd",
    ),
)

DRILLS = (SCORES, CONV)
