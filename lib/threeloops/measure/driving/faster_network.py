"""Faster network: the same weights and the same answers in less time: batch norms folded into the convolutions before
them, other orders in memory; and a fair clock for several ways of doing the same.

>>> import torch
>>> block = nn.Sequential(nn.Conv2d(2, 3, 3, bias=False), nn.BatchNorm2d(3), nn.ReLU()).eval()
>>> x = torch.ones(1, 2, 5, 5)
>>> (
...     bool(torch.allclose(folded(block)(x), block(x), atol=1e-6)),
...     len(block.state_dict()),
...     len(folded(block).state_dict()),
... )
(True, 6, 2)
"""

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from threeloops import checks
from threeloops.measure.driving import bev_network, box_grid
from threeloops.measure.driving.bev_network import BirdsEye
from threeloops.measure.driving.detection_score import average_precision, road_iou
from threeloops.measure.driving.pipeline import Pipeline
from threeloops.simulate.driving import rays, scenes

Module = TypeVar("Module", bound=nn.Module)
Name = TypeVar("Name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """The detector's three pieces, however they are made: what the chain calls one after the other."""

    backbone: Callable[[Tensor], Tensor]
    lift: Callable[[Tensor], Tensor]
    heads: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]

    @torch.no_grad()
    def __call__(self, images: Tensor, pillars: Tensor) -> tuple[Tensor, Tensor]:
        return self.heads(self.lift(self.backbone(images)), pillars)

    def chain(self) -> Pipeline:
        """The whole chain around these pieces."""
        return Pipeline(cast(BirdsEye, self))


def as_trained(network: BirdsEye) -> Pieces:
    return Pieces(backbone=network.backbone, lift=network.lift, heads=network.heads)


def encoder_per_task(network: BirdsEye, *, tasks: int) -> Pieces:
    """Backbone and lift once for each task, with the same weights: the time of separate encoders, the answers of one.

    Assumes:  separate encoders of the same size; trained apart, each might answer a little better or worse
    """
    checks.count(tasks=tasks)

    def lifted(images: Tensor) -> Tensor:
        for _task in range(tasks):
            grid: Tensor = network.lift(network.backbone(images))
        return grid

    return Pieces(backbone=lifted, lift=nn.Identity(), heads=network.heads)


def channels_last(network: BirdsEye) -> Pieces:
    """Weights and pictures with the channels of a pixel side by side in memory."""
    order = torch.channels_last
    backbone, heads = copy.deepcopy(network.backbone), copy.deepcopy(network.heads)
    for piece in (backbone, heads):
        piece.to(memory_format=order)  # type: ignore[call-overload]
    return Pieces(
        backbone=lambda images: backbone(images.contiguous(memory_format=order)),
        lift=network.lift,
        heads=lambda grid, pillars: heads(grid.contiguous(memory_format=order), pillars),
    )


def with_norms_folded(network: BirdsEye) -> Pieces:
    return Pieces(backbone=folded(network.backbone), lift=network.lift, heads=folded(network.heads))


def boxes_only(network: BirdsEye) -> Pieces:
    """Without the road's head, norms folded: for a mode of driving that asks for nobody's road. In its place stands
    what the head would have read.
    """
    heads = folded(network.heads)
    heads.road = nn.Sequential()
    return Pieces(backbone=folded(network.backbone), lift=network.lift, heads=heads)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What a way answers on scenes that nothing was trained on."""

    near_ap: float  # cars, centre within 0.5 m
    ap: float  # cars, centre within 2 m
    road_iou: float

    def __str__(self) -> str:
        return f"car AP {self.near_ap:.3f} within 0.5 m, {self.ap:.3f} within 2 m, road IoU {self.road_iou:.3f}"


def judged(said: Sequence[tuple[Tensor, Tensor]], seen: Sequence[rays.Frame]) -> Score:
    """The score of (boxes, road) of each frame, against the world at the moment of capture."""
    found = [box_grid.boxes_of(boxes[0]) for boxes, _ in said]
    roads = [(road[0, 0] > 0).numpy() for _, road in said]
    true = [rays.truth(frame) for frame in seen]
    near_ap, ap = (average_precision(found, true, kind=scenes.CAR, within_m=within_m) for within_m in (0.5, 2.0))
    return Score(near_ap=near_ap, ap=ap, road_iou=road_iou(roads, [rays.road_truth(frame) for frame in seen]))


def score(way: Pieces, seen: Sequence[rays.Frame]) -> Score:
    """The score of a way that knows no history."""
    return judged([way(*bev_network.batch([frame])) for frame in seen], seen)


def scored_in_turns(
    ways: Mapping[str, Pieces], seen: Sequence[rays.Frame]
) -> tuple[dict[str, float], dict[str, Score]]:
    """(least seconds, score) of each way: on each frame all ways answer one after the other, each on the clock of
    in_turns.

    Assumes:  every frame is as much work; a way's first answers, which make room in memory, are never the least
    """
    said: dict[str, list[tuple[Tensor, Tensor]]] = {name: [] for name in ways}
    taken = dict.fromkeys(ways, float("inf"))
    for frame in seen:
        given = bev_network.batch([frame])
        for name, way in ways.items():
            start = time.process_time()
            said[name].append(way(*given))
            taken[name] = min(taken[name], time.process_time() - start)
    return taken, {name: judged(answers, seen) for name, answers in said.items()}


def folded(module: Module) -> Module:
    """A copy in which each batch norm that follows a convolution directly, in one Sequential, is part of it.

    Formula:  weight * gamma / sqrt(variance + eps) per output channel; bias likewise
    Assumes:  the module is in evaluation: its norms use the means and variances that training left behind
    Source:   Jacob et al., 2017, arXiv:1712.05877, section 3.2 (folding)
    """
    copied = copy.deepcopy(module).eval()
    for part in copied.modules():
        if isinstance(part, nn.Sequential):
            _fold_inside(part)
    return copied


def _fold_inside(row: nn.Sequential) -> None:
    for place in range(len(row) - 1):
        before, after = row[place], row[place + 1]
        if isinstance(before, nn.Conv2d) and isinstance(after, nn.BatchNorm2d):
            row[place] = fuse_conv_bn_eval(before, after)
            row[place + 1] = nn.Identity()


def in_turns(ways: Mapping[Name, Callable[[], object]], *, rounds: int, warmup: int = 2) -> dict[Name, float]:
    """The least seconds of each way, all ways in every round: what else runs on the machine meets all of them alike,
    and can only add to a time.

    Processor time: with one thread it is the time on the clock of a machine that does nothing else, and waiting for
    others does not count.
    """
    checks.count(rounds=rounds)
    checks.count(at_least=0, warmup=warmup)
    samples: dict[Name, list[float]] = {name: [] for name in ways}
    for turn in range(warmup + rounds):
        for name, way in ways.items():
            start = time.process_time()
            way()
            if turn >= warmup:
                samples[name].append(time.process_time() - start)
    return {name: min(seconds) for name, seconds in samples.items()}
