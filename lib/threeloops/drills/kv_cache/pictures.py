"""Drills on pictures in a prompt: how many tokens they are, and what these leave in the cache."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.product_loop.operating import image_prompts
from threeloops.units import thousand

TAUGHT = Taught("product", "KV cache")

SOURCE_PICTURE = "Hugging Face, transformers, models/qwen2_vl/image_processing_qwen2_vl.py, 2024 (sides rounded to 28)"


def _draw_picture(rng: random.Random) -> Draw:
    return drawn(
        height=rng.choice((480, 600, 720, 768, 900, 1080, 1200, 1440)),
        width=rng.choice((640, 800, 1024, 1280, 1366, 1600, 1920, 2048)),
        pictures=rng.randrange(2, 12),
        kb_per_token=rng.choice((57.344, 114.688, 131.072, 147.456, 196.608, 262.144)),
    )


def _bytes(p: Draw, *, patch: int, merged: int) -> float:
    tokens = image_prompts.image_tokens(height=p.height, width=p.width, patch=patch, merged=merged)
    return float(p.pictures * tokens * p.kb_per_token * thousand)


def _derive_picture(p: Draw) -> Derivation:
    side = "(14 × 2)"
    return Derivation(
        value=_bytes(p, patch=14, merged=2),
        formula="pictures × round(height / 28) × round(width / 28) × bytes of a token",
        substitution=(
            f"{p.pictures} × floor({p.height} / {side} + 0.5) × floor({p.width} / {side} + 0.5) × {p.kb_per_token}e3"
        ),
        source=SOURCE_PICTURE,
    )


def _count_picture(p: Draw) -> float:
    """Sides stretched or cut to whole tokens, then one square of patches after another."""

    def fitted(side: int) -> int:
        return min(range(28, side + 28, 28), key=lambda whole: abs(whole - side))

    tokens = 0
    for _picture in range(p.pictures):
        for _row in range(0, fitted(p.height), 28):
            tokens += len(range(0, fitted(p.width), 28))
    return float(tokens * p.kb_per_token * thousand)


PICTURE = Drill(
    key="kv-pictures",
    taught=TAUGHT,
    title="What a picture leaves in the cache",
    unit="B",
    capacity=True,
    target_s=110,
    draw=_draw_picture,
    small=lambda rng: _draw_picture(rng),
    prompt=lambda p: (
        "A model takes pictures at their own resolution: sides are rounded to the nearest multiple of 28 pixels, the"
        " picture is cut into patches of 14 × 14, and 2 × 2 patches become one token. A token's keys and values are"
        f" {p.kb_per_token * thousand:,.0f} bytes. How much cache do {p.pictures} pictures of {p.height} × {p.width}"
        " pixels fill?"
    ),
    derive=_derive_picture,
    count=_count_picture,
    slips=(
        Slip("patches", lambda p: 4 * _bytes(p, patch=14, merged=2))
        | "You counted patches. Four of them become one token.",
        Slip("pairs", lambda p: 2 * _bytes(p, patch=14, merged=2))
        | "You merged two patches. A square of 2 × 2 is four.",
        Slip("one-picture", lambda p: _bytes(p, patch=14, merged=2) / p.pictures) | "That is one picture.",
        Slip("fixed-size", lambda p: p.pictures * 576 * p.kb_per_token * thousand)
        | "You took 576 tokens for any picture, as older models do. Here they follow its size.",
    ),
)

DRILLS = (PICTURE,)
