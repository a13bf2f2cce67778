"""The detector of this chapter: trained on generated scenes in a minute or two. The copy in trained/ comes with the
book, so that nobody has to wait for it; another recipe is trained where it is asked for, and kept for the next part.

`python -m threeloops.measure.driving.bev_training` trains the book's own again and puts it in its place.
"""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from threeloops import checks
from threeloops.measure import kept_models
from threeloops.measure.driving import bev_network, box_grid
from threeloops.measure.driving.bev_network import BirdsEye
from threeloops.measure.driving.detection_score import average_precision, road_iou
from threeloops.simulate.driving import rays, scenes
from threeloops.units import fmt_seconds

KEPT, SHIPPED = kept_models.KEPT, Path(__file__).with_name("trained")
EDITION = 2  # goes up with the network, the scenes or the loss: an older copy is then trained anew
SEED = 41
HELD_OUT_SEEDS = tuple(range(900_000, 900_030))  # no training scene has such a number


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All that decides what the detector is, besides the machine's rounding."""

    scenes: int = 400
    steps: int = 480
    batch: int = 2
    learning_rate: float = 4e-3

    def __post_init__(self) -> None:
        checks.count(scenes=self.scenes, steps=self.steps, batch=self.batch)
        checks.positive(learning_rate=self.learning_rate)


RECIPE = Recipe()


def detector(recipe: Recipe = RECIPE) -> BirdsEye:
    """The copy that comes with the book, or the kept one, or one trained now and kept. Prints one line that says how
    good it is on 30 scenes that it has never seen.
    """
    print("detector: measured", end=" ", flush=True)
    kept = shipped_path(recipe)
    if not kept.exists():
        kept = kept_path(recipe)
        kept_models.make_sure_of(
            kept, lambda: _as_kept(recipe), said="no copy yet: trained now, a minute or two on two free cores"
        )
    found = kept_models.loaded(kept)
    network = BirdsEye()
    network.load_state_dict(found["weights"])
    print(
        f"{network.num_parameters:,} parameters; car AP {found['car_ap']:.2f} within 2 m, {found['near_ap']:.2f} within"
        f" 0.5 m, road IoU {found['road_iou']:.2f} held out; trained in {fmt_seconds(found['training_s'])}"
    )
    return network.eval().requires_grad_(False)


def shipped_path(recipe: Recipe = RECIPE) -> Path:
    """Where a copy lies that comes with the book, if one of this very recipe does."""
    return SHIPPED / f"detector-{_digest(recipe)}.pt"


def kept_path(recipe: Recipe = RECIPE) -> Path:
    """Where a copy lies that was trained on this machine."""
    return kept_models.path(KEPT, "detector", _digest(recipe))


def _digest(recipe: Recipe) -> str:
    return kept_models.digest((asdict(recipe), EDITION, SEED))


def _as_kept(recipe: Recipe) -> dict[str, Any]:
    network, training_s = trained(recipe)
    held_out = [rays.frame(scenes.scene(seed), 1.0) for seed in HELD_OUT_SEEDS]
    found, roads = detections(network, held_out)
    true = [rays.truth(frame) for frame in held_out]
    return {
        "weights": network.state_dict(),
        "training_s": training_s,
        "car_ap": average_precision(found, true, kind=scenes.CAR, within_m=2.0),
        "near_ap": average_precision(found, true, kind=scenes.CAR, within_m=0.5),
        "road_iou": road_iou(roads, [rays.road_truth(frame) for frame in held_out]),
    }


@torch.no_grad()
def detections(network: BirdsEye, frames: list[rays.Frame]) -> tuple[list[scenes.Boxes], list[scenes.Flags]]:
    """(boxes, road) that the network alone says of each frame: no tracker, no history."""
    said = [network(*bev_network.batch([frame])) for frame in frames]
    return [box_grid.boxes_of(boxes[0]) for boxes, _ in said], [(road[0, 0] > 0).numpy() for _, road in said]


def trained(recipe: Recipe) -> tuple[BirdsEye, float]:
    """(network, seconds of training): nothing is kept."""
    drawn = np.random.default_rng(SEED)
    moments = drawn.uniform(0.0, 3.0, recipe.scenes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        network = BirdsEye()
        optimiser = torch.optim.AdamW(network.parameters(), lr=recipe.learning_rate, weight_decay=0.02, fused=True)
        rate = torch.optim.lr_scheduler.OneCycleLR(
            optimiser, max_lr=recipe.learning_rate, total_steps=recipe.steps, pct_start=0.15
        )
        started = time.perf_counter()
        frames = [rays.frame(scenes.scene(seed), float(moment)) for seed, moment in enumerate(moments)]
        for _step in range(recipe.steps):
            some = [frames[number] for number in drawn.integers(recipe.scenes, size=recipe.batch)]
            lost = box_grid.loss(network(*bev_network.batch(some)), box_grid.targets(some))
            optimiser.zero_grad(set_to_none=True)
            lost.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimiser.step()
            rate.step()
    return network.eval().requires_grad_(False), time.perf_counter() - started


if __name__ == "__main__":
    SHIPPED.mkdir(exist_ok=True)
    torch.save(_as_kept(RECIPE), shipped_path())
