"""Drills on block formats: what a shared scale costs, and what a checkpoint of two formats weighs."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.inner_loop import block_formats
from threeloops.inner_loop.block_formats import BlockFormat
from threeloops.inner_loop.number_formats import E2M1, E2M3, Format
from threeloops.simulate.inner_loop import packed_blocks
from threeloops.units import billion

TAUGHT = Taught("inner", "Number formats")

SOURCE_MX = "OCP Microscaling Formats (MX) v1.0, 2023, section 5"


GRIDS = {4: "E2M1", 6: "E2M3"}  # by element bits
ELEMENTS: dict[int, Format] = {4: E2M1, 6: E2M3}


def block_form(p: Draw) -> BlockFormat:
    """The block format of a draw; a scale is a power of two of eight bits."""
    return BlockFormat(name="drawn", element=ELEMENTS[p.element_bits], block=p.block)


def amount(weights: int) -> str:
    """Billions in words, smaller numbers in digits."""
    return f"{weights // billion} billion" if weights >= billion else f"{weights:,}"


def written_bits(p: Draw, elements: int) -> int:
    """Bits of so many elements, really packed."""
    values = [0.25 + place % 7 for place in range(elements)]
    return len(packed_blocks.packed(values, grid=packed_blocks.grid(GRIDS[p.element_bits]), block=p.block))


# --- bits of a block format ---------------------------------------------------------------------


def _draw_block(rng: random.Random) -> Draw:
    element_bits, block = rng.choice(((4, 32), (4, 16), (4, 8), (6, 16), (6, 8)))
    return drawn(element_bits=element_bits, block=block, weights=rng.randrange(13, 73, 3) * billion)


def _small_block(rng: random.Random) -> Draw:
    element_bits, block = rng.choice(((4, 16), (4, 8), (6, 8)))
    return drawn(element_bits=element_bits, block=block, weights=block * rng.choice((3, 5, 6)))


BLOCK = Drill(
    key="format-block-bytes",
    taught=TAUGHT,
    title="A scale for every block",
    unit="B",
    target_s=75,
    draw=_draw_block,
    small=_small_block,
    prompt=lambda p: (
        f"{amount(p.weights)} weights are stored in a microscaling format: {p.element_bits} bits per weight, and one"
        f" 8-bit scale for every {p.block} of them. How many bytes is that?"
    ),
    derive=lambda p: Derivation(
        value=block_formats.stored_bytes(p.weights, block_form(p)),
        formula="weights × (element bits + scale bits / block) / 8",
        substitution=f"{p.weights} × ({p.element_bits} + 8 / {p.block}) / 8",
        source=SOURCE_MX,
    ),
    count=lambda p: written_bits(p, p.weights) / 8,
    slips=(
        Slip("no-scales", lambda p: p.weights * p.element_bits / 8)
        | "You stored no scales. Without them a kernel cannot read the weights back.",
        Slip("scale-per-weight", lambda p: p.weights * (p.element_bits + 8) / 8)
        | "You gave every weight a scale of its own. A block shares one.",
        Slip("fp32-scales", lambda p: p.weights * (p.element_bits + 32 / p.block) / 8)
        | "You stored the scales in 32 bits. Here they have eight.",
        Slip("bits-for-bytes", lambda p: p.weights * (p.element_bits + 8 / p.block)) | "Those are bits.",
        Slip("sign-extra", lambda p: p.weights * (p.element_bits + 1 + 8 / p.block) / 8)
        | "You added a sign bit. The element's bits hold its sign, its exponent and its mantissa.",
    ),
)

# --- a checkpoint of two formats -----------------------------------------------------------------


def _derive_mixed(p: Draw) -> Derivation:
    narrow, wide = block_formats.stored_bytes(p.narrow, block_form(p)), p.wide * 2
    return Derivation(
        value=narrow + wide,
        formula="block-format weights × (element bits + scale bits / block) / 8 + 16-bit weights × 2",
        substitution=f"{p.narrow} × ({p.element_bits} + 8 / {p.block}) / 8 + {p.wide} × 2",
        source=f"{SOURCE_MX}; gpt-oss model card, 2025, arXiv:2508.10925 (experts in MXFP4, the rest in BF16)",
    )


def _count_mixed(p: Draw) -> float:
    sixteen = "".join(format(place, "016b") for place in range(p.wide))
    return (written_bits(p, p.narrow) + len(sixteen)) / 8


MIXED = Drill(
    key="format-mixed-checkpoint",
    taught=TAUGHT,
    title="The few that stay wide",
    unit="B",
    target_s=90,
    draw=lambda rng: drawn(
        element_bits=4, block=16, narrow=rng.randrange(19, 60, 2) * billion, wide=rng.choice((5, 6, 7)) * billion
    ),
    small=lambda rng: drawn(element_bits=4, block=16, narrow=16 * rng.choice((9, 14)), wide=rng.choice((30, 40))),
    prompt=lambda p: (
        f"A model keeps the {amount(p.narrow)} weights of its experts in a block format, {p.element_bits} bits each and"
        f" an 8-bit scale for every {p.block}. The other {amount(p.wide)} weights stay in BF16. How large is the"
        " checkpoint?"
    ),
    derive=_derive_mixed,
    count=_count_mixed,
    prerequisites=("format-block-bytes",),
    slips=(
        Slip("all-narrow", lambda p: (p.narrow + p.wide) * (p.element_bits + 8 / p.block) / 8)
        | "You put every weight into the narrow format. The others are few and four times as heavy.",
        Slip("narrow-only", lambda p: p.narrow * (p.element_bits + 8 / p.block) / 8)
        | "You left out the weights that stay in BF16.",
        Slip("all-wide", lambda p: (p.narrow + p.wide) * 2) | "That is the model before it was quantised.",
        Slip("one-byte", lambda p: p.narrow * (8 + 8 / p.block) / 8 + p.wide * 2)
        | "You gave each of the narrow weights a byte. Two of them share one.",
        Slip("no-scales", lambda p: p.narrow * p.element_bits / 8 + p.wide * 2)
        | "You stored no scales. Without them a kernel cannot read the experts back.",
    ),
)

DRILLS = (BLOCK, MIXED)
