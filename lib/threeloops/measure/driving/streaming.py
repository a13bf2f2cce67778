"""Detections judged against the world at the moment at which they are used, not at which the picture was taken
(streaming perception, Li et al., 2020, arXiv:2005.10420; for driving, Wang et al., 2022, arXiv:2212.08914).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from threeloops import checks
from threeloops.measure.driving.bev_network import BirdsEye
from threeloops.measure.driving.detection_score import average_precision
from threeloops.measure.driving.pipeline import Pipeline
from threeloops.simulate.driving import rays, scenes
from threeloops.simulate.driving.scenes import Boxes

REPAIRS = ("as seen", "own motion", "predicted")
SEEDS = tuple(range(910_000, 910_012))  # drives that no training has seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A frame and what the tracker said of it, in the vehicle's frame at capture."""

    frame: rays.Frame
    tracks: Boxes


def drives(
    network: BirdsEye, *, period_s: float, frames: int, judged: int, seeds: Iterable[int] = SEEDS
) -> list[Watched]:
    """Each drive from its beginning through the whole chain; the last `judged` frames of each are kept, so that the
    tracker has had time to learn velocities.
    """
    checks.count(frames=frames, judged=judged)
    chain, watched = Pipeline(network), []
    for seed in seeds:
        chain.reset()
        said = [Watched(frame=frame, tracks=chain.run(frame).tracks) for frame in rays.frames(seed, frames, period_s)]
        watched += said[-judged:]
    return watched


def score(watched: Sequence[Watched], *, latency_s: float, repair: str, within_m: float) -> float:
    """Average precision of cars, against where they are when the answer is used.

    repair: "as seen", a box is used where it was seen from the vehicle; "own motion", the way that the vehicle itself
    has driven since is taken off; "predicted", the box is moved on at the tracker's velocity, too
    """
    checks.one_of(REPAIRS, repair=repair)
    believed, true = zip(*(_used(one, latency_s, repair) for one in watched), strict=True)
    return average_precision(believed, true, kind=scenes.CAR, within_m=within_m)


def _used(one: Watched, latency_s: float, repair: str) -> tuple[Boxes, Boxes]:
    """(believed, true) in one frame: the vehicle's at use where nothing is repaired, else its frame at capture."""
    use_s = one.frame.t_s + latency_s
    true = rays.truth(one.frame, use_s)
    if repair == "as seen":
        return one.tracks, true.in_world(one.frame.ego).seen_from(one.frame.scene.at(use_s).ego)
    return (one.tracks.later(latency_s) if repair == "predicted" else one.tracks), true
