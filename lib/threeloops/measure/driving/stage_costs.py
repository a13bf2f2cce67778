"""What the network's stages cost: torch's own count of their FLOPs, and every stage's seconds over many frames."""

import statistics
from collections.abc import Sequence

import torch

from threeloops import checks
from threeloops.measure.driving import bev_network
from threeloops.measure.driving.bev_network import BirdsEye
from threeloops.measure.driving.pipeline import STAGES, Pipeline
from threeloops.measure.inner_loop.flops import counted_flops
from threeloops.simulate.driving import rays


@torch.no_grad()
def stage_flops(network: BirdsEye, frame: rays.Frame) -> dict[str, int]:
    """FLOPs of one frame in each stage that torch can count; 0 for the lift, of which it has no formula."""
    images, pillars = bev_network.batch([frame])
    features = network.backbone(images)
    grid = network.lift(features)
    return {
        "backbone": counted_flops(network.backbone, images).total,
        "lift": counted_flops(network.lift, features).total,
        "heads": counted_flops(network.heads, grid, pillars).total,
    }


def stage_seconds(chain: Pipeline, frames: Sequence[rays.Frame], *, warmup: int = 2) -> dict[str, float]:
    """Median seconds of each stage over the frames; the first ones are run and not counted."""
    checks.count(at_least=warmup + 1, frames=len(frames))
    chain.reset()
    seen = [chain.run(frame).seconds for frame in frames][warmup:]
    return {stage: statistics.median(seconds[stage] for seconds in seen) for stage in STAGES}
