"""A candidate planner: a few hundred ways to drive on, each scored against the predicted boxes and the road."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from threeloops.simulate.driving import rays
from threeloops.simulate.driving.scenes import Boxes, Flags, Floats

TIMES_S = np.arange(1, 11) * 0.3
ACCELERATIONS = np.linspace(-6.0, 2.0, 15)  # m/s²
CURVATURES = np.linspace(-0.08, 0.08, 21)  # 1/m
OWN_LENGTH_M, OWN_WIDTH_M = 4.6, 1.9
MARGIN_M = 0.5
COLLISION, OFF_ROAD, SLOW, BEND, PUSH = 1000.0, 60.0, 1.0, 40.0, 0.05  # costs; those above are kept apart by size


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The cheapest candidate, and how many there were to choose from."""

    path: Floats  # (times, 2), the vehicle's frame at capture
    acceleration_m_per_s2: float
    curvature_per_m: float
    collides: bool
    off_road_share: float
    candidates: int


def candidates(speed_m_per_s: float) -> tuple[Floats, Floats, Floats]:
    """(paths (n, times, 2), accelerations, curvatures): arcs of constant curvature, each speed down to standstill."""
    push, bend = (grid.ravel() for grid in np.meshgrid(ACCELERATIONS, CURVATURES, indexing="ij"))
    until = np.minimum(TIMES_S, np.where(push < 0, speed_m_per_s / np.maximum(-push, 1e-9), np.inf)[:, None])
    along = speed_m_per_s * until + push[:, None] * until**2 / 2
    angle = along * bend[:, None]
    # sin(a)/a and (1 - cos(a))/a, which stay finite on the straight
    ahead = along * np.sinc(angle / np.pi)
    left = along * np.sinc(angle / (2 * np.pi)) * np.sin(angle / 2)
    return np.stack([ahead, left], axis=-1), push, bend


def planned(predicted: Sequence[Boxes], road: Flags, *, speed_m_per_s: float, wanted_m_per_s: float) -> Plan:
    """The cheapest way on.

    predicted: the boxes at each of TIMES_S, in the vehicle's frame at capture
    """
    paths, push, bend = candidates(speed_m_per_s)
    hits = np.zeros(len(paths), dtype=bool)
    for step, boxes in enumerate(predicted):
        hits |= _touches(paths[:, step], boxes)
    off = ~_on_road(paths, road)
    final = np.maximum(speed_m_per_s + push * TIMES_S[-1], 0.0)
    cost = (
        COLLISION * hits
        + OFF_ROAD * off.mean(axis=1)
        + SLOW * np.abs(final - wanted_m_per_s)
        + BEND * np.abs(bend)
        + PUSH * push**2
    )
    best = int(cost.argmin())
    return Plan(
        path=paths[best],
        acceleration_m_per_s2=float(push[best]),
        curvature_per_m=float(bend[best]),
        collides=bool(hits[best]),
        off_road_share=float(off[best].mean()),
        candidates=len(paths),
    )


def _touches(places: Floats, boxes: Boxes) -> Flags:
    """Which of these places of the vehicle lie in a box that is grown by half the vehicle: in the box's own axes, the
    vehicle taken as long as it is in every direction but that of its width.
    """
    if not len(boxes):
        return np.zeros(len(places), dtype=bool)
    offset = places[:, None] - boxes.centre[None]
    cosine, sine = np.cos(boxes.yaw), np.sin(boxes.yaw)
    along = np.abs(cosine * offset[..., 0] + sine * offset[..., 1])
    across = np.abs(cosine * offset[..., 1] - sine * offset[..., 0])
    length = (boxes.size[:, 0] + OWN_LENGTH_M) / 2 + MARGIN_M
    width = (boxes.size[:, 1] + OWN_WIDTH_M) / 2 + MARGIN_M
    return np.asarray(((along < length) & (across < width)).any(axis=1))


def _on_road(paths: Floats, road: Flags) -> Flags:
    """Looked up in the segmented grid; what lies outside the grid counts as road, for nothing is known of it."""
    cell = np.floor((paths + rays.HALF_GRID_M) / rays.CELL_M).astype(np.int64)
    inside = ((cell >= 0) & (cell < rays.GRID_CELLS)).all(axis=-1)
    safe = cell.clip(0, rays.GRID_CELLS - 1)
    return np.asarray(road[safe[..., 0], safe[..., 1]] | ~inside)
