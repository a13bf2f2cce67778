"""What the network's stages cost: by the shapes of their layers, by torch's own count, and on the clock.

>>> costs = stage_work_by_shapes()
>>> {stage: round(work.flops / 1e9, 3) for stage, work in costs.items()}
{'backbone': 0.943, 'lift': 0.002, 'heads': 1.332}
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import torch

from threeloops import checks
from threeloops.driving import stage_work
from threeloops.measure.driving import bev_network
from threeloops.measure.driving.bev_network import BirdsEye
from threeloops.measure.driving.pipeline import STAGES, Pipeline
from threeloops.measure.inner_loop.flops import counted_flops
from threeloops.operations.roofline import Work
from threeloops.simulate.driving import rays

# (channels in, channels out, kernel, stride) of the layers, as bev_network builds them; a test holds them together.
BACKBONE = (
    (3, 24, 3, 2), (24, 40, 3, 2), (40, 40, 3, 1), (40, 40, 3, 1), (40, 80, 3, 2),
    (80, 80, 3, 1), (80, 112, 3, 1), (112, 112, 3, 1), (112, 56, 1, 1),
)  # fmt: skip
HEADS = (
    ((45, 48, 3, 1), (48, 48, 3, 1)),  # near
    ((48, 96, 3, 2), (96, 96, 3, 1), (96, 96, 3, 1), (96, 48, 1, 1)),  # wide
    ((96, 48, 3, 1),),  # joined
    ((48, 40, 3, 1), (40, 8, 1, 1)),  # boxes
    ((48, 24, 3, 1), (24, 1, 1, 1)),  # road
)
FP32_BYTES = 4
PASSES = 2  # batch norm and ReLU, each a pass of its own over a layer's output


def stage_work_by_shapes() -> dict[str, Work]:
    """FLOPs and bytes of the network's three stages for one frame."""
    cells = rays.GRID_CELLS
    camera = stage_work.convolutions(BACKBONE, height=rays.IMAGE_ROWS, width=rays.IMAGE_COLUMNS)
    blocks = [
        stage_work.layers_work(
            stage_work.convolutions(shapes, height=cells, width=cells),
            images=1,
            input_elements=shapes[0][0] * cells**2,
            bytes_per_element=FP32_BYTES,
            passes=PASSES,
        )
        for shapes in HEADS
    ]
    return {
        "backbone": stage_work.layers_work(
            camera,
            images=bev_network.CAMERAS,
            input_elements=3 * rays.IMAGE_ROWS * rays.IMAGE_COLUMNS,
            bytes_per_element=FP32_BYTES,
            passes=PASSES,
        ),
        "lift": stage_work.lift_work(
            cameras=bev_network.CAMERAS,
            depths=len(bev_network.DEPTHS_M),
            pixels=camera[-1].output_height * camera[-1].output_width,
            context=bev_network.CONTEXT,
            cells=cells**2,
            bytes_per_element=FP32_BYTES,
        ),
        "heads": sum(blocks[1:], blocks[0]),
    }


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


def stages_alone(network: BirdsEye, frame: rays.Frame) -> dict[str, Callable[[], object]]:
    """Each stage of the network as a call on one frame's own tensors, to be timed in turns with what it is held
    against: a rate measured at another moment met other neighbours on the core.
    """
    images, pillars = bev_network.batch([frame])
    with torch.no_grad():
        features = network.backbone(images)
        grid = network.lift(features)
    calls = {
        "backbone": lambda: network.backbone(images),
        "lift": lambda: network.lift(features),
        "heads": lambda: network.heads(grid, pillars),
    }
    return {stage: torch.no_grad()(call) for stage, call in calls.items()}


def stage_seconds(
    chains: Mapping[str, Pipeline], drive: Sequence[rays.Frame], *, rounds: int = 5, warmup: int = 2
) -> dict[str, dict[str, float]]:
    """Processor seconds of each stage of each chain, on one drive: a frame's least over the rounds, the median of the
    frames.

    Every round drives from the start, so that the tracker has tracks to work on; the first frames, in which it begins
    them, are run and not counted. All chains see a frame before the next one comes: what else runs on the machine meets
    all of them alike.
    """
    checks.count(rounds=rounds)
    checks.count(at_least=warmup + 1, frames=len(drive))
    told: dict[str, list[list[dict[str, float]]]] = {name: [] for name in chains}  # by chain, round and frame
    for _round in range(rounds):
        for name, chain in chains.items():
            chain.reset()
            told[name].append([])
        for frame in drive:
            for name, chain in chains.items():
                told[name][-1].append(chain.run(frame, clock=time.process_time).seconds)
    return {
        name: {
            stage: statistics.median(
                min(once[stage] for once in same) for same in list(zip(*every, strict=True))[warmup:]
            )
            for stage in STAGES
        }
        for name, every in told.items()
    }
