"""Errors to spot in what serving costs: dollars per token, and how large a quantised file is."""

import random

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw, drawn
from threeloops.product_loop import serving
from threeloops.room.kinds.spots.spot import Line, Misstep, Worked
from threeloops.units import BITS_PER_BYTE, billion, fmt_bytes, fmt_percent, hour, million, minute


def _gb(value: float) -> str:
    return fmt_bytes(value, base=10)


# --- dollars ------------------------------------------------------------------------------------


def _draw_cost(rng: random.Random) -> Draw:
    return drawn(
        dollars=rng.choice((2.2, 2.6, 3.4, 4.5)),
        gpus=rng.choice((4, 6, 8)),
        rate=rng.randrange(6000, 20001, 1000),
        busy=rng.choice((0.4, 0.5, 0.6)),
    )


COST = Worked(
    key="spot-dollars-per-token",
    title="A colleague's price",
    topic="capacity",
    loop="product",
    section="Capacity and cost",
    target_s=75,
    draw=_draw_cost,
    prompt=lambda p: (
        f"A server of {p.gpus} GPUs at {p.dollars} dollars per GPU-hour makes {p.rate:,} tokens per second while it is"
        f" busy, which is {fmt_percent(p.busy)} of the time; it is paid for all the time. What do a million tokens"
        " cost?"
    ),
    lines=(
        Line(
            name="hourly",
            value=lambda v: v.gpus * v.dollars,
            text=lambda v: f"An hour of the server: {v.gpus} × {v.dollars} = {v.hourly:.4g} dollars",
        ),
        Line(
            name="average",
            value=lambda v: v.rate * v.busy,
            text=lambda v: f"Tokens per second, all hours counted: {v.rate:,} × {v.busy:g} = {v.average:,.0f}",
        ),
        Line(
            name="tokens",
            value=lambda v: v.average * hour,
            text=lambda v: f"Tokens per hour: {v.average:,.0f} × {hour:,} = {v.tokens / million:,.4g} million",
        ),
        Line(
            name="cost",
            value=lambda v: v.hourly / v.tokens * million,
            text=lambda v: f"A million tokens: {v.hourly:.4g} / {v.tokens / million:,.4g} = {v.cost:.3g} dollars",
        ),
    ),
    missteps=(
        Misstep(
            key="one-gpu",
            line="hourly",
            value=lambda v: v.dollars,
            text=lambda v: f"An hour: {v.hourly:.4g} dollars",
            story="That is one GPU of the server. All of them are paid for.",
        ),
        Misstep(
            key="always-busy",
            line="average",
            value=lambda v: v.rate,
            text=lambda v: f"Tokens per second, all hours counted: {v.average:,.0f}",
            story="An idle server makes no tokens and is paid for all the same.",
        ),
        Misstep(
            key="minutes",
            line="tokens",
            value=lambda v: v.average * minute,
            text=lambda v: f"Tokens per hour: {v.average:,.0f} × {minute} = {v.tokens / million:,.4g} million",
            story="That is a minute's worth of tokens against an hour's worth of dollars.",
        ),
    ),
    answer=lambda p: serving.dollars_per_million_tokens(
        dollars_per_hour=p.gpus * p.dollars, tokens_per_s=p.rate, busy_share=p.busy
    ),
    source="price per hour over tokens per hour; the machine is paid for whether busy or not",
)

# --- a quantised file ----------------------------------------------------------------------------


def _draw_file(rng: random.Random) -> Draw:
    return drawn(
        weights=rng.choice((7, 8, 13, 32, 70)) * billion, element_bits=rng.choice((4, 6)), block=rng.choice((8, 16))
    )


FILE = Worked(
    key="spot-quantised-file",
    title="A colleague's quantised file",
    topic="compression",
    loop="product",
    section="Compression",
    target_s=75,
    draw=_draw_file,
    prompt=lambda p: (
        f"A file holds {p.weights / billion:g} billion weights in {p.element_bits} bits each, and beside every"
        f" {p.block} of them a scale of 8 bits. How much smaller is it than the same weights in 16 bits?"
    ),
    lines=(
        Line(
            name="elements",
            value=lambda v: v.weights * v.element_bits / BITS_PER_BYTE,
            text=lambda v: f"Weights: {v.weights / billion:g} billion × {v.element_bits} bits / 8 = {_gb(v.elements)}",
        ),
        Line(
            name="scales",
            value=lambda v: v.weights / v.block,
            text=lambda v: f"Scales, one byte each: {v.weights / billion:g} billion / {v.block} = {_gb(v.scales)}",
        ),
        Line(
            name="file",
            value=lambda v: v.elements + v.scales,
            text=lambda v: f"File: {_gb(v.elements)} + {_gb(v.scales)} = {_gb(v.file)}",
        ),
        Line(
            name="wide", value=lambda v: 2 * v.weights, text=lambda v: f"In 16 bits: 2 bytes × weights = {_gb(v.wide)}"
        ),
        Line(
            name="ratio",
            value=lambda v: v.wide / v.file,
            text=lambda v: f"Smaller by {_gb(v.wide)} / {_gb(v.file)} = {v.ratio:.3g} times",
        ),
    ),
    missteps=(
        Misstep(
            key="from-fp32",
            line="wide",
            value=lambda v: 4 * v.weights,
            text=lambda v: f"Unquantised: 4 bytes × weights = {_gb(v.wide)}",
            story="That compares with fp32, which doubles every compression ratio. The question says 16 bits.",
        ),
        Misstep(
            key="no-scales",
            line="file",
            value=lambda v: v.elements,
            text=lambda v: f"File: {_gb(v.file)}",
            story="Without its scales the file cannot be read. They are in it.",
        ),
        Misstep(
            key="whole-bytes",
            line="elements",
            value=lambda v: v.weights,
            text=lambda v: f"Weights: {v.weights / billion:g} billion, a byte each = {_gb(v.elements)}",
            story="Weights of fewer than 8 bits are packed; they do not take a byte each.",
        ),
        Misstep(
            key="wide-scales",
            line="scales",
            value=lambda v: 4 * v.weights / v.block,
            text=lambda v: (
                f"Scales, four bytes each: 4 × {v.weights / billion:g} billion / {v.block} = {_gb(v.scales)}"
            ),
            story="A scale of 8 bits is one byte.",
        ),
    ),
    answer=lambda p: 2 * p.weights / DRILLS["format-block-bytes"].derive(p).value,
    source="OCP Microscaling Formats (MX) v1.0, 2023, section 5",
    prerequisites=("format-block-bytes",),
)

WORKED = (COST, FILE)
