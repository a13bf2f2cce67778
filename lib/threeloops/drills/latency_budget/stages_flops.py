"""A drill on what a stage of the driving pipeline computes, from its shapes alone."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.driving import stage_work
from threeloops.simulate.driving import filters

TAUGHT = Taught("driving", "A pipeline that runs")


def _draw(rng: random.Random) -> Draw:
    height, width = rng.choice(((64, 176), (128, 352), (256, 704), (96, 320)))
    return drawn(
        cameras=rng.choice((5, 6, 7)),
        height=height,
        width=width,
        channels=rng.choice((40, 48, 56, 80)),
        filters=rng.choice((72, 88, 104, 120)),
        kernel=rng.choice((3, 5)),
        stride=2,
    )


def _small(rng: random.Random) -> Draw:
    return drawn(
        cameras=rng.choice((2, 3)), height=4, width=rng.choice((6, 8)), channels=rng.choice((1, 3)), filters=2,
        kernel=3, stride=rng.choice((1, 2)),
    )  # fmt: skip


def _flops(p: Draw) -> float:
    shape = (p.channels, p.filters, p.kernel, p.stride)
    (layer,) = stage_work.convolutions((shape,), height=p.height, width=p.width)
    return float(p.cameras * layer.flops)


def _counted(p: Draw) -> float:
    return 2.0 * filters.multiply_adds(
        pictures=p.cameras, rows=p.height, columns=p.width, channels=p.channels, filters=p.filters, kernel=p.kernel,
        stride=p.stride,
    )  # fmt: skip


FLOPS = Drill(
    key="latency-stage-flops",
    taught=TAUGHT,
    title="One layer of a backbone, over all cameras",
    unit="FLOP",
    target_s=90,
    draw=_draw,
    small=_small,
    prompt=lambda p: (
        f"A layer of a camera backbone is a {p.kernel} × {p.kernel} convolution with stride {p.stride}, padded at the"
        f" border, from {p.channels} channels to {p.filters}. It meets {p.cameras} cameras, each with"
        f" {p.height} × {p.width} places before the layer. How many FLOPs does the layer do for one set of pictures, at"
        " 2 FLOPs per multiply-add?"
    ),
    derive=lambda p: Derivation(
        value=_flops(p),
        formula="2 × kernel² × channels in × channels out × output places × cameras",
        substitution=(
            f"2 × {p.kernel}² × {p.channels} × {p.filters} × ({p.height} / {p.stride}) × ({p.width} / {p.stride})"
            f" × {p.cameras}"
        ),
        source="Dumoulin and Visin, 2016, arXiv:1603.07285 (output size); one filter per output channel and place",
    ),
    count=_counted,
    slips=(
        Slip("multiply-adds", lambda p: _flops(p) / 2)
        | "You counted multiply-adds. Each of them is a multiplication and an addition.",
        Slip("one-camera", lambda p: _flops(p) / p.cameras)
        | "That is one camera's picture. The backbone runs on all of them.",
        Slip("input-places", lambda p: _flops(p) * p.stride**2)
        | "You put the filters on every place of the input. The stride skips some, in both directions.",
        Slip("stride-in-one-direction", lambda p: _flops(p) * p.stride)
        | "You halved one side of the picture. The stride skips places in both directions.",
        Slip("no-kernel", lambda p: _flops(p) / p.kernel**2)
        | "You multiplied one place only. A filter covers a square of places for each output value.",
        Slip("one-channel", lambda p: _flops(p) / p.channels) | "A filter reads all channels of its input, not one.",
    ),
)

DRILLS: tuple[Drill, ...] = (FLOPS,)
