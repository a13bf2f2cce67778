"""The whole chain on drives that the detector has never seen, judged at capture and at the moment of use."""

from collections.abc import Sequence
from dataclasses import dataclass

from threeloops import checks
from threeloops.measure.driving.detection_score import average_precision, road_iou
from threeloops.measure.driving.pipeline import Pipeline
from threeloops.simulate.driving import rays, scenes

FIRST_SEED = 900_100  # no training scene has such a number
SETTLED = 3  # frames of a drive that are run and not judged: a tracker needs some to know velocities


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainScore:
    """Cars, all judged frames together. `later_ap`: tracks moved on by the latency, against the world as it is then."""

    coarse_ap: float  # tracks within 2 m, at capture
    fine_ap: float  # tracks within 0.5 m, at capture
    later_ap: float  # within 0.5 m, at the moment of use
    unmoved_ap: float  # the same for this frame's boxes as they were found
    road_iou: float

    def __str__(self) -> str:
        return (
            f"AP {self.coarse_ap:.2f} within 2 m, {self.fine_ap:.2f} within 0.5 m,"
            f" {self.later_ap:.2f} when used; road {self.road_iou:.2f}"
        )


def drives(*, scenes_seen: int, frames: int, period_s: float = 0.1) -> list[list[rays.Frame]]:
    """Frames of a few scenes with numbers of their own."""
    checks.count(scenes_seen=scenes_seen)
    checks.count(at_least=SETTLED + 1, frames=frames)
    return [rays.frames(FIRST_SEED + number, frames, period_s) for number in range(scenes_seen)]


def score(chain: Pipeline, driven: Sequence[Sequence[rays.Frame]], *, latency_s: float) -> ChainScore:
    """Run a chain over drives, each from a fresh start."""
    checks.non_negative(latency_s=latency_s)
    seen = []
    for drive in driven:
        chain.reset()
        seen += [(frame, chain.run(frame)) for frame in drive][SETTLED:]
    now = [rays.truth(frame) for frame, _ in seen]
    then = [rays.truth(frame, frame.t_s + latency_s) for frame, _ in seen]

    def cars(found: list[scenes.Boxes], true: list[scenes.Boxes], within_m: float) -> float:
        return average_precision(found, true, kind=scenes.CAR, within_m=within_m)

    tracks = [result.tracks for _, result in seen]
    return ChainScore(
        coarse_ap=cars(tracks, now, 2.0),
        fine_ap=cars(tracks, now, 0.5),
        later_ap=cars([result.at(frame.t_s + latency_s) for frame, result in seen], then, 0.5),
        unmoved_ap=cars([result.found for _, result in seen], then, 0.5),
        road_iou=road_iou([result.road for _, result in seen], [rays.road_truth(frame) for frame, _ in seen]),
    )
