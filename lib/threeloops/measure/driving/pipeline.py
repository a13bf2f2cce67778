"""The chain from pictures to a plan, stage by stage, each with its seconds.

>>> from threeloops.measure.driving import bev_network, pipeline
>>> from threeloops.simulate.driving import rays
>>> chain = pipeline.Pipeline(bev_network.BirdsEye().eval())  # bev_training.detector() for one that has learnt
>>> for frame in rays.frames(seed=3, n=2, period_s=0.1):
...     result = chain.run(frame)
>>> tuple(result.seconds) == pipeline.STAGES
True
>>> result.road.shape, result.plan.candidates, len(result.predicted)
((64, 64), 315, 10)

`result.found` are the boxes of this frame, `result.tracks` the tracker's with velocities, `result.at(t_s)` the tracks
at a later moment. All of them are in the vehicle's frame at capture; `rays.truth(frame, at_s=...)` gives the true boxes
of any moment in the same frame.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from threeloops.measure.driving import bev_network, box_grid, planning
from threeloops.measure.driving.bev_network import BirdsEye
from threeloops.measure.driving.planning import Plan
from threeloops.measure.driving.tracking import GATE_M, Tracker
from threeloops.simulate.driving.rays import Frame
from threeloops.simulate.driving.scenes import Boxes, Flags, Pose

STAGES = ("preprocess", "backbone", "lift", "heads", "track", "predict", "plan")
WANTED_M_PER_S = 11.0  # the speed that the planner would like to drive at


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What the chain says of one frame, in the vehicle's frame at capture, and how long each stage took."""

    t_s: float
    found: Boxes
    road: Flags
    tracks: Boxes
    predicted: tuple[Boxes, ...]  # at planning.TIMES_S after capture
    plan: Plan
    seconds: dict[str, float]

    def at(self, t_s: float) -> Boxes:
        """The tracks at another moment, each moved on at its velocity."""
        return self.tracks.later(t_s - self.t_s)


class Pipeline:
    """A detector, a tracker and a planner that see one frame after another.

    The vehicle's own motion comes from its odometry: the pose of each frame, of which only the step from the frame
    before is used. Three mistakes can be built in, to see what they cost: `odometry_sign` -1 takes each step backwards,
    `camera_turned_deg` believes the cameras turned, `gate_m` changes what the tracker takes for the same road user.
    """

    def __init__(
        self,
        network: BirdsEye,
        *,
        odometry_sign: int = 1,
        camera_turned_deg: float = 0.0,
        gate_m: float = GATE_M,
    ) -> None:
        self.network = network
        self.lift = bev_network.Lift(camera_turned_deg) if camera_turned_deg else network.lift
        self.odometry_sign, self.gate_m = odometry_sign, gate_m
        self.reset()

    def reset(self) -> None:
        """Forget the tracks and the way: another scene begins."""
        self.tracker = Tracker(gate_m=self.gate_m)
        self.last: Pose | None = None
        self.odometry = Pose(x_m=0.0, y_m=0.0, yaw_rad=0.0)

    @torch.no_grad()
    def run(self, frame: Frame, *, clock: Callable[[], float] = time.perf_counter) -> Result:
        """All stages, in order, each timed by itself."""
        timed = _Timed(clock)
        images, pillars = timed.stage("preprocess", self.preprocess, frame)
        features = timed.stage("backbone", self.network.backbone, images)
        grid = timed.stage("lift", self.lift, features)
        found, road = timed.stage("heads", self.heads, grid, pillars)
        tracks = timed.stage("track", self.track, found, frame)
        predicted = timed.stage("predict", self.predict, tracks)
        plan = timed.stage("plan", self.plan, predicted, road, frame.ego.speed_m_per_s)
        return Result(
            t_s=frame.t_s, found=found, road=road, tracks=tracks, predicted=predicted, plan=plan, seconds=timed.seconds
        )

    def preprocess(self, frame: Frame) -> tuple[Tensor, Tensor]:
        return bev_network.batch([frame])

    def heads(self, grid: Tensor, pillars: Tensor) -> tuple[Boxes, Flags]:
        boxes, road = self.network.heads(grid, pillars)
        return box_grid.boxes_of(boxes[0]), np.asarray((road[0, 0] > 0).numpy())

    def track(self, found: Boxes, frame: Frame) -> Boxes:
        """Boxes into the odometry's frame, through the tracker, and back into the vehicle's."""
        self.odometry = moved(self.odometry, self.last, frame.ego, self.odometry_sign)
        self.last = frame.ego
        told = self.tracker.update(found.in_world(self.odometry), frame.t_s)
        return told.seen_from(self.odometry)

    def predict(self, tracks: Boxes) -> tuple[Boxes, ...]:
        return tuple(tracks.later(float(seconds)) for seconds in planning.TIMES_S)

    def plan(self, predicted: tuple[Boxes, ...], road: Flags, speed_m_per_s: float) -> Plan:
        return planning.planned(predicted, road, speed_m_per_s=speed_m_per_s, wanted_m_per_s=WANTED_M_PER_S)


def moved(so_far: Pose, last: Pose | None, now: Pose, sign: int) -> Pose:
    """Dead reckoning: the way so far and one step more, as the vehicle saw it from its last pose."""
    if last is None:
        return so_far
    step = sign * last.into_vehicle(np.array([now.x_m, now.y_m]))
    x, y = so_far.into_world(step)
    return Pose(x_m=float(x), y_m=float(y), yaw_rad=so_far.yaw_rad + sign * (now.yaw_rad - last.yaw_rad))


class _Timed:
    """Runs a stage and keeps its seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.seconds: dict[str, float] = {}

    def stage(self, name: str, does: Any, *given: Any) -> Any:
        started = self.clock()
        done = does(*given)
        self.seconds[name] = self.clock() - started
        return done
