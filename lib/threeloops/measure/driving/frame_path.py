"""The way of a frame through this machine's memory: packed raw bytes become the small picture that a network reads,
once with the full-size picture coloured and normalised first, once made small first. Both give the same picture.

>>> packed = packed_frames(cameras=1, width=64, height=32)
>>> large, small = walked(packed, "large first", shrink=4), walked(packed, "small first", shrink=4)
>>> torch.allclose(large.picture, small.picture, atol=1e-4)
True
>>> large.moved_bytes / (64 * 32), small.moved_bytes / (64 * 32)
(54.25, 7.75)

Source: MIPI CSI-2, RAW12: two pixels in three bytes, the high eight bits of each first
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from threeloops import checks

MEAN, SPREAD = (1200.0, 1500.0, 1100.0), (600.0, 700.0, 650.0)  # of the three colours, in steps of a 12-bit sensor
LOW_HALF = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One pass over all frames."""

    name: str
    moved_bytes: int  # what it has to read and what it has to write
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """All passes, and what came out."""

    passes: tuple[Pass, ...]
    picture: torch.Tensor  # cameras, colours, rows, columns

    @property
    def moved_bytes(self) -> int:
        return sum(one.moved_bytes for one in self.passes)

    @property
    def seconds(self) -> float:
        return sum(one.seconds for one in self.passes)


def packed_frames(*, cameras: int, width: int, height: int, seed: int = 4) -> torch.Tensor:
    """Frames as they come over CSI-2: rows of packed 12-bit pixels, here of noise."""
    checks.count(cameras=cameras, width=width, height=height)
    made = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (cameras, height, width * 3 // 2), dtype=torch.uint8, generator=made)


def unpacked(packed: torch.Tensor) -> torch.Tensor:
    """Three bytes become two pixels of 16 bits."""
    rows, row_bytes = packed.shape
    triples = packed.view(rows, row_bytes // 3, 3).to(torch.int16)
    first = triples[..., 0] * 16 + (triples[..., 2] & LOW_HALF)
    second = triples[..., 1] * 16 + (triples[..., 2] >> 4)
    return torch.stack((first, second), dim=-1).view(rows, row_bytes * 2 // 3)


def _cells(raw: torch.Tensor) -> torch.Tensor:
    """One colour triple for every cell of 2 by 2 pixels: red, the mean of two greens, blue."""
    red, blue = raw[0::2, 0::2], raw[1::2, 1::2]
    green = (raw[0::2, 1::2] + raw[1::2, 0::2]) / 2
    return torch.stack((red.float(), green.float(), blue.float()))


def coloured(raw: torch.Tensor) -> torch.Tensor:
    """A full-size picture in three colours of 32 bits: every pixel gets the colours of its cell."""
    return _cells(raw).repeat_interleave(2, dim=1).repeat_interleave(2, dim=2)


def normalised(picture: torch.Tensor) -> torch.Tensor:
    """Each colour less its mean, over its spread."""
    mean, spread = (torch.tensor(values)[:, None, None] for values in (MEAN, SPREAD))
    return (picture - mean) / spread


def _averaged(picture: torch.Tensor, size: int) -> torch.Tensor:
    return torch.nn.functional.avg_pool2d(picture[None], size)[0]


def walked(packed: torch.Tensor, order: str, *, shrink: int, repeats: int = 3) -> Walk:
    """All frames through all passes, one frame after the other; of several rounds the fastest seconds of each pass.

    Raises:   ValueError for an order that is neither "large first" nor "small first"
    """
    steps: dict[str, tuple[tuple[str, Callable[[torch.Tensor], torch.Tensor]], ...]] = {
        "large first": (
            ("unpack", unpacked),
            ("colour", coloured),
            ("normalise", normalised),
            ("resize", lambda full: _averaged(full, shrink)),
        ),
        "small first": (
            ("unpack", unpacked),
            ("colour and resize", lambda raw: _averaged(_cells(raw), shrink // 2)),
            ("normalise", normalised),
        ),
    }
    checks.one_of(steps, order=order)
    rounds = [_round(packed, steps[order]) for _ in range(repeats)]
    fastest = tuple(min(same, key=lambda one: one.seconds) for same in zip(*(r.passes for r in rounds), strict=True))
    return Walk(passes=fastest, picture=rounds[0].picture)


def _round(packed: torch.Tensor, steps: tuple[tuple[str, Callable[[torch.Tensor], torch.Tensor]], ...]) -> Walk:
    moved, seconds, pictures = dict.fromkeys(dict(steps), 0), dict.fromkeys(dict(steps), 0.0), []
    for frame in packed:
        now = frame
        for name, step in steps:
            start = time.perf_counter()
            made = step(now)
            seconds[name] += time.perf_counter() - start
            moved[name] += now.nbytes + made.nbytes
            now = made
        pictures.append(now)
    passes = tuple(Pass(name=name, moved_bytes=moved[name], seconds=seconds[name]) for name, _ in steps)
    return Walk(passes=passes, picture=torch.stack(pictures))
