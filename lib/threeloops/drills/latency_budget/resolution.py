"""Drills on larger pictures: what the encoder costs on one, and a whole frame, whose heads stay on their grid."""

import random
from typing import Any

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.driving import perception_cost
from threeloops.simulate.driving import perception_frames
from threeloops.units import GFLOP

TAUGHT = Taught("driving", "Making it fast")

# --- another resolution --------------------------------------------------------------------------

SIZES = ((1920, 1080), (1280, 720), (1600, 900), (1920, 1280), (1344, 768))


def _draw_pixels(rng: random.Random) -> Draw:
    width, height = rng.choice(SIZES)
    return drawn(width=width, height=height, side=rng.choice((224, 288, 380)), gmac=rng.randrange(12, 90) / 10)


def _small_pixels(rng: random.Random) -> Draw:
    """One 1 × 1 kernel over a whole number of squares."""
    side = rng.choice((2, 3))
    across, down = rng.choice(((3, 2), (4, 3)))
    return drawn(width=side * across, height=side * down, side=side, gmac=side * side * 5 / GFLOP)


def _pixels(p: Draw) -> float:
    return perception_cost.flops_at(flops=2 * p.gmac * GFLOP, pixels=p.side**2, new_pixels=p.width * p.height)


PIXELS = Drill(
    key="latency-other-resolution",
    taught=TAUGHT,
    title="The same network on a camera's picture",
    unit="FLOP",
    target_s=90,
    apart=1.06,
    draw=_draw_pixels,
    small=_small_pixels,
    prompt=lambda p: (
        f"A paper gives a convolutional encoder {p.gmac:g} billion multiply-adds on a picture of {p.side} × {p.side}."
        f" Your camera delivers {p.width} × {p.height}, and nothing is scaled down. How many FLOPs does one picture"
        " cost, at 2 FLOPs per multiply-add and with work in proportion to the pixels?"
    ),
    derive=lambda p: Derivation(
        value=_pixels(p),
        formula="2 × multiply-adds × new pixels / old pixels",
        substitution=f"2 × {p.gmac:g} × 1000000000 × {p.width} × {p.height} / ({p.side} × {p.side})",
        source="Dumoulin and Visin, 2016, arXiv:1603.07285 (a convolution's work is per output position)",
    ),
    count=lambda p: float(
        perception_frames.flops_of_a_convolution(
            height=p.height, width=p.width, kernel=1, channels=round(p.gmac * GFLOP / p.side**2)
        )
    ),
    slips=(
        Slip("macs", lambda p: _pixels(p) / 2)
        | "Those are multiply-adds. Each is two FLOPs; papers on vision often print the former as FLOPs.",
        Slip("same-size", lambda p: 2 * p.gmac * GFLOP)
        | "That is the paper's picture. A larger one has more positions to slide over.",
        Slip("one-side", lambda p: 2 * p.gmac * GFLOP * p.width / p.side)
        | "You scaled by the width alone. Work grows with the area.",
        Slip("squared-twice", lambda p: 2 * p.gmac * GFLOP * (p.width * p.height / p.side**2) ** 2)
        | "You squared the ratio of the areas. That would be attention from every position to every other.",
    ),
)

# --- a whole frame at another resolution ----------------------------------------------------------


def _draw_frame(rng: random.Random) -> Draw:
    width, height = rng.choice(SIZES)
    return drawn(
        width=width,
        height=height,
        side=rng.choice((224, 288, 380)),
        cameras=rng.choice((5, 6, 7)),
        image=rng.randrange(50, 100) / 10,
        heads=rng.randrange(60, 120),
    )


def _small_frame(rng: random.Random) -> Draw:
    """One 1 × 1 kernel over a whole number of squares."""
    side = rng.choice((2, 3))
    across, down = rng.choice(((3, 2), (4, 3)))
    return drawn(
        width=side * across, height=side * down, side=side, cameras=rng.choice((2, 3)),
        image=side * side * 10 / GFLOP, heads=rng.randrange(60, 90) / GFLOP,
    )  # fmt: skip


def _frame(p: Draw, **changes: float) -> float:
    image = perception_cost.flops_at(flops=p.image * GFLOP, pixels=p.side**2, new_pixels=p.width * p.height)
    values: dict[str, Any] = {
        "cameras": p.cameras,
        "encoders": 1,
        "image_flops": image,
        "heads_flops": p.heads * GFLOP,
    }
    return perception_cost.perception_flops(**(values | changes))


def _count_frame(p: Draw) -> float:
    channels = round(p.image * GFLOP / p.side**2 / 2)
    picture = perception_frames.flops_of_a_convolution(height=p.height, width=p.width, kernel=1, channels=channels)
    return float(
        perception_frames.flops_of_a_frame(
            cameras=p.cameras, tasks=1, shared=True, image_flops=picture, head_flops=[round(p.heads * GFLOP)]
        )
    )


FRAME = Drill(
    key="latency-frame-at-resolution",
    taught=TAUGHT,
    title="A frame at the cameras' resolution, heads included",
    unit="FLOP",
    target_s=90,
    apart=1.06,
    draw=_draw_frame,
    small=_small_frame,
    prompt=lambda p: (
        f"One encoder, shared by all tasks, costs {p.image:g} GFLOP on a picture of {p.side} × {p.side}. The heads"
        f" cost {p.heads:g} GFLOP a frame: they work on a bird's-eye grid of fixed size. Now {p.cameras} cameras"
        f" deliver {p.width} × {p.height}, nothing is scaled down, and the encoder's work is in proportion to"
        " the pixels. How many FLOPs does one frame cost, heads included?"
    ),
    derive=lambda p: Derivation(
        value=_frame(p),
        formula="cameras × image × new pixels / old pixels + heads",
        substitution=(
            f"({p.cameras} × {p.image:g} × {p.width} × {p.height} / ({p.side} × {p.side}) + {p.heads:g}) × 1000000000"
        ),
        source="Dumoulin and Visin, 2016, arXiv:1603.07285; Philion and Fidler, 2020, arXiv:2008.05711 (one grid)",
    ),
    count=_count_frame,
    slips=(
        Slip("heads-grow-too", lambda p: _frame(p, heads_flops=p.heads * GFLOP * p.width * p.height / p.side**2))
        | "You let the heads grow with the pictures. Their grid is as large as before.",
        Slip("no-heads", lambda p: _frame(p, heads_flops=0)) | "You left out the heads. They are paid in every frame.",
        Slip("heads-per-camera", lambda p: _frame(p, heads_flops=p.cameras * p.heads * GFLOP))
        | "You ran the heads once for each camera. They read one grid, once a frame.",
        Slip("same-size", lambda p: _frame(p, image_flops=p.image * GFLOP))
        | "You kept the small picture. A larger one has more positions to slide over.",
    ),
)

DRILLS = (PIXELS, FRAME)
