"""Engine pieces: the detector's backbone and heads as ONNX graphs, in fp32 and in INT8, made once and kept.

They are exported apart, because the lift between them is no layer of a network, and because a scale fits better the
less it has to fit.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

import torch
from torch import Tensor, nn

from threeloops.measure import kept_models
from threeloops.measure.driving import bev_network
from threeloops.measure.driving.bev_network import BirdsEye
from threeloops.measure.driving.faster_network import (
    Pieces,
    as_trained,
    channels_last,
    encoder_per_task,
    folded,
    with_norms_folded,
)
from threeloops.measure.driving.onnx_engine import Engine, calibrated, exported, for_tensorrt
from threeloops.measure.driving.sparse_lift import TableLift
from threeloops.simulate.driving import rays, scenes

CALIBRATION_SEEDS = tuple(range(800_000, 800_012))  # neither trained on nor judged
EDITION = 4


class _Joined(nn.Module):
    """The heads with one input: the map and the pillars one behind the other."""

    def __init__(self, heads: nn.Module) -> None:
        super().__init__()
        self.heads = heads

    def forward(self, both: Tensor) -> tuple[Tensor, Tensor]:
        boxes, road = self.heads(both[:, : bev_network.CONTEXT], both[:, bev_network.CONTEXT :])
        return boxes, road


@dataclass(frozen=True, slots=True, kw_only=True)
class Graphs:
    """Backbone and heads of one detector, ready to be started."""

    fp32: tuple[bytes, bytes]
    int8: tuple[bytes, bytes]  # convolutions that make the outputs in fp32
    int8_everywhere: tuple[bytes, bytes]
    int8_unfolded: tuple[bytes, bytes]  # norms left as layers of their own: a mistake, to see what it costs
    int8_tensorrt: tuple[bytes, bytes]  # the ranges of int8, the graph as TensorRT wants it

    def pieces(self, kind: str, lift: Callable[[Tensor], Tensor]) -> Pieces:
        """The detector's pieces with these graphs, by the name of a field, around a lift."""
        backbone, heads = (Engine(graph, fuse=True) for graph in getattr(self, kind))

        def both_heads(grid: Tensor, pillars: Tensor) -> tuple[Tensor, Tensor]:
            boxes, road = heads.outputs(torch.cat([grid, pillars], dim=1))
            return boxes, road

        return Pieces(backbone=backbone, lift=lift, heads=both_heads)


def eight_ways(network: BirdsEye, made: Graphs) -> dict[str, Pieces]:
    """One detector, from an encoder for each of three tasks to INT8; from the fourth on, each way keeps what the one
    before it changed.
    """
    plain, table = with_norms_folded(network), TableLift(network.lift)
    return {
        "an encoder per task": encoder_per_task(network, tasks=3),
        "one encoder": as_trained(network),
        "channels last": channels_last(network),
        "norms folded": plain,
        "lift by table": Pieces(backbone=plain.backbone, lift=table, heads=plain.heads),
        "ONNX Runtime": made.pieces("fp32", table),
        "INT8": made.pieces("int8", table),
        "INT8 everywhere": made.pieces("int8_everywhere", table),
    }


def graphs(network: BirdsEye) -> Graphs:
    """The kept graphs of these very weights, or ones made now and kept. Prints one line that says which."""
    print("engines: measured", end=" ", flush=True)
    kept = kept_path(network)
    kept_models.make_sure_of(kept, lambda: _as_kept(network), said="exported and calibrated now, a minute at most")
    found = {name: graph.numpy().tobytes() for name, graph in kept_models.loaded(kept).items()}
    print(", ".join(f"{name} {len(graph):,} bytes" for name, graph in found.items() if "_" not in name))
    kinds = [field.name for field in fields(Graphs)]
    return Graphs(**{kind: (found[f"{kind} backbone"], found[f"{kind} heads"]) for kind in kinds})


def kept_path(network: BirdsEye) -> Path:
    """By the weights themselves: another detector has other graphs."""
    weights = hashlib.sha256()
    for tensor in network.state_dict().values():
        weights.update(tensor.numpy().tobytes())
    return kept_models.path(
        kept_models.KEPT, "engines", kept_models.digest((weights.hexdigest(), CALIBRATION_SEEDS, EDITION))
    )


@torch.no_grad()
def _as_kept(network: BirdsEye) -> dict[str, Tensor]:
    batches = [bev_network.batch([rays.frame(scenes.scene(seed), 1.0)]) for seed in CALIBRATION_SEEDS]
    pictures = [images for images, _ in batches]
    maps = [torch.cat([network.lift(network.backbone(images)), pillars], dim=1) for images, pillars in batches]
    made = {}
    for name, piece, seen in (("backbone", network.backbone, pictures), ("heads", _Joined(network.heads), maps)):
        plain, unfolded = (exported(one, torch.cat(seen[:2])) for one in (folded(piece), piece))
        made[f"fp32 {name}"] = plain
        made[f"int8 {name}"] = calibrated(plain, seen, outputs_in_fp32=True)
        made[f"int8_everywhere {name}"] = calibrated(plain, seen, outputs_in_fp32=False)
        made[f"int8_unfolded {name}"] = calibrated(unfolded, seen, outputs_in_fp32=True)
        made[f"int8_tensorrt {name}"] = for_tensorrt(plain, seen, outputs_in_fp32=True)
    return {name: torch.frombuffer(bytearray(graph), dtype=torch.uint8) for name, graph in made.items()}
