"""Follow-ups on time: an all-reduce that leaves its node, a product and the part to run it on."""

import random
from typing import Any

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Draw, changed, drawn
from threeloops.drills.engine.searches import wanted
from threeloops.drills.roofline.intensity import dense
from threeloops.room.kinds.chains.chain import Chain, Decision, Step, best, clear
from threeloops.room.kinds.chains.change import value_of
from threeloops.room.letters import Option
from threeloops.units import GB, fmt_bytes, fmt_percent, fmt_seconds, fmt_si, ms


def _gb(value: float) -> str:
    return fmt_bytes(value, base=10)


def _gains_told(gains: dict[str, float], options: tuple[Option, ...], unit: str, scale: float = 1) -> str:
    texts = {option.key: option.text for option in options}
    return "; ".join(f"{texts[key]}: saves {gain / scale:.3g} {unit}" for key, gain in gains.items()) + "."


# --- an all-reduce that leaves its node ---------------------------------------------------------


def _draw_nodes(rng: random.Random) -> Draw:
    inside, between = (catalogued.part(key)["bytes_per_s_one_way"] for key in ("nvlink-4", "infiniband-ndr"))
    names = {"gpu": "H100", "card": catalogued.part("infiniband-ndr").name, "link": catalogued.part("nvlink-4").name}

    def draw() -> Draw:
        p = drawn(inside=inside, between=between, **names, per_node=8, nodes=8, size=rng.choice((2, 7, 14, 16)) * GB)
        p.wider, p.cards, p.fewer = rng.choice((1.5, 2, 3, 4)), rng.choice((1.5, 2, 4)), rng.choice((0.1, 0.2, 0.4))
        return p

    return wanted(draw, lambda p: clear(_node_gains(p)))


def _node_gains(p: Draw) -> dict[str, float]:
    now = value_of("two-level-all-reduce", p)
    changes = {
        "inside": {"inside": p.inside * p.wider},
        "between": {"between": p.between * p.cards},
        "bytes": {"size": p.size * (1 - p.fewer)},
    }
    return {key: now - value_of("two-level-all-reduce", changed(p, **change)) for key, change in changes.items()}


def _node_options(p: Draw) -> tuple[Option, ...]:
    return (
        Option(key="inside", text=f"NVLink {p.wider:g} times as fast"),
        Option(key="between", text=f"network cards {p.cards:g} times as fast"),
        Option(key="bytes", text=f"{fmt_percent(p.fewer)} fewer bytes of gradients"),
    )


NODES = Chain(
    key="nodes",
    title="An all-reduce",
    draw=_draw_nodes,
    steps=(
        Step(drill="ring-time", numbers=lambda p: drawn(ranks=8, size=p.size, rate=p.inside, link=p.link, alpha=0)),
        Step(
            drill="two-level-all-reduce",
            numbers=lambda p: changed(p, nodes=4),
            text=lambda p: (
                f"Now at 32 GPUs across 4 nodes of 8, {_gb(p.size)} each: reduce-scatter inside each node at"
                f" {fmt_si(p.inside, 'B/s')}, ring all-reduces between nodes, each GPU over its own card at"
                f" {fmt_si(p.between, 'B/s')}, all-gather inside. One way, no latency, no overlap. How long?"
            ),
        ),
        Step(
            drill="two-level-all-reduce",
            numbers=lambda p: p,
            text=lambda p: (
                f"Now at 64 GPUs across 8 nodes of 8 ({_gb(p.size)} each, {fmt_si(p.inside, 'B/s')} inside,"
                f" {fmt_si(p.between, 'B/s')} between, three phases as before). How long?"
            ),
        ),
    ),
    decision=Decision(
        drill="two-level-all-reduce",
        text=lambda p: "You may have one of these. So which shortens that all-reduce over 8 nodes most?",
        options=_node_options,
        right=lambda p: best(_node_gains(p)),
        because=lambda p: _gains_told(_node_gains(p), _node_options(p), "ms", ms),
    ),
)

# --- a product, and the part to run it on --------------------------------------------------------

OFFERED = ("a100-sxm4-80gb", "l40s", "l4", "tpu-v6e")


def _roofs(key: str) -> dict[str, Any]:
    """A part's two roofs."""
    return dense(key)


def _draw_product(rng: random.Random) -> Draw:
    part = catalogued.part("h100-sxm5")
    k, n = rng.choice(((4096, 4096), (4096, 14336), (8192, 8192)))
    return drawn(
        sparse=part.sparse_peak_flops_per_s("bf16"),
        fp32=part.peak_flops_per_s("fp32"),
        link=2 * part["link_bytes_per_s_one_way"],
        dtype="BF16",
        **dense("h100-sxm5"),
        k=k,
        n=n,
        m=4096,
        few=rng.choice((16, 32, 64)),
        bytes_per_element=2,
        decides=rng.choice(("prefill", "decode")),
    )


def _rates(p: Draw) -> dict[str, float]:
    """Products per second of the deciding step, on each part that is offered."""
    m = p.m if p.decides == "prefill" else p.few
    rows: dict[str, dict[str, Any]] = {key: _roofs(key) | {"m": m} for key in OFFERED}
    return {key: 1 / value_of("roofline-time-bound", changed(p, **row)) for key, row in rows.items()}


PRODUCT = Chain(
    key="product",
    title="A matmul",
    draw=_draw_product,
    steps=(
        Step(drill="roofline-ridge-point", numbers=lambda p: p),
        Step(
            drill="roofline-gemm-intensity",
            numbers=lambda p: p,
            text=lambda p: (
                f"A prompt of {p.m:,} tokens, {p.k:,} wide, is multiplied by a matrix of {p.k:,} × {p.n:,}, all in 16"
                " bits, each matrix moved once. What is the arithmetic intensity?"
            ),
        ),
        Step(
            drill="roofline-gemm-intensity",
            numbers=lambda p: changed(p, m=p.few),
            text=lambda p: (
                f"Now decoding: {p.few} tokens instead of {p.m:,}, the same matrix of {p.k:,} × {p.n:,}. What is the"
                " arithmetic intensity?"
            ),
        ),
        Step(
            drill="roofline-time-bound",
            numbers=lambda p: changed(p, m=p.few),
            text=lambda p: (
                f"On that H100 ({fmt_si(p.peak, 'FLOP/s')} dense, {fmt_si(p.memory, 'B/s')}), how long does the matmul"
                f" of {p.few} tokens by {p.k:,} × {p.n:,} take at least?"
            ),
        ),
    ),
    decision=Decision(
        drill="roofline-time-bound",
        text=lambda p: (
            "No H100 is to be had. So which part would you buy for the"
            f" {'prompt' if p.decides == 'prefill' else 'decoding'} step ({p.m if p.decides == 'prefill' else p.few:,}"
            f" tokens, {p.k:,} × {p.n:,}), if speed is all that counts?"
        ),
        options=lambda p: tuple(
            Option(
                key=key,
                text=(
                    f"{catalogued.part(key).name}: {fmt_si(row['peak'], 'FLOP/s')} dense in BF16,"
                    f" {fmt_si(row['memory'], 'B/s')}"
                ),
            )
            for key in OFFERED
            for row in [_roofs(key)]
        ),
        right=lambda p: best(_rates(p)),
        because=lambda p: (
            "At least "
            + ", ".join(
                f"{fmt_seconds(1 / rate)} on the {catalogued.part(key).name}" for key, rate in _rates(p).items()
            )
            + "."
        ),
    ),
)
