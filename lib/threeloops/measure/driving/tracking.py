"""Boxes over time: a Kalman filter of constant velocity for each road user, and the Hungarian assignment that says
which new box belongs to which filter.

The filters stand still over ground: the pipeline hands in boxes of the odometry's frame, so that the vehicle's own
motion is not taken for theirs.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linear_sum_assignment

from threeloops.simulate.driving.scenes import Boxes, Floats, Ints

GATE_M = 2.5  # a box farther than this from where a track is expected is somebody else
MISSES, TOLD_MISSES = 4, 1  # frames without a box after which a track ends; after which it is no longer told
BEGIN_SCORE = 0.3  # a weaker box may keep a track alive, but begins none
SURE_HITS, SURE_SCORE = 2, 0.5  # a track is told after two boxes, or at once when the first is sure
BOX_SIGMA_M = 0.3
PUSH_M_PER_S2 = 2.0  # how hard road users speed up or turn: the filter's process noise
FIRST_SPEED_SIGMA = 8.0  # m/s: nothing is known of a new track's velocity


@dataclass(slots=True, kw_only=True)
class Filter:
    """Place and velocity, (x, y, vx, vy), and how unsure they are."""

    state: Floats
    covariance: Floats

    def forward(self, seconds: float) -> None:
        """x ← F x, P ← F P Fᵀ + Q, where Q is that of a white acceleration."""
        move = np.eye(4)
        move[0, 2] = move[1, 3] = seconds
        push = np.array([[seconds**4 / 4, seconds**3 / 2], [seconds**3 / 2, seconds**2]]) * PUSH_M_PER_S2**2
        self.state = move @ self.state
        self.covariance = move @ self.covariance @ move.T + np.kron(push, np.eye(2))

    def corrected(self, place: Floats) -> None:
        """K = P Hᵀ (H P Hᵀ + R)⁻¹; x ← x + K (z - H x); P ← (I - K H) P."""
        spread = self.covariance[:2, :2] + BOX_SIGMA_M**2 * np.eye(2)
        gain = self.covariance[:, :2] @ np.linalg.inv(spread)
        self.state = self.state + gain @ (place - self.state[:2])
        self.covariance = self.covariance - gain @ self.covariance[:2]


def new_filter(place: Floats) -> Filter:
    unsure = np.diag([BOX_SIGMA_M**2] * 2 + [FIRST_SPEED_SIGMA**2] * 2)
    return Filter(state=np.array([*place, 0.0, 0.0]), covariance=unsure)


@dataclass(slots=True, kw_only=True)
class Track:
    """One road user as the tracker knows it."""

    number: int
    kind: int
    filter: Filter
    size: Floats
    yaw: float
    score: float
    hits: int = 1
    misses: int = 0


@dataclass(slots=True, kw_only=True)
class Tracker:
    """All tracks, and the time at which they were last moved to."""

    gate_m: float = GATE_M
    tracks: list[Track] = field(default_factory=list)
    t_s: float | None = None
    born: int = 0

    def update(self, found: Boxes, t_s: float) -> Boxes:
        """Move the tracks to t_s, give them the new boxes, and tell those that are sure."""
        if self.t_s is not None:
            for track in self.tracks:
                track.filter.forward(t_s - self.t_s)
        self.t_s = t_s
        expected = np.array([track.filter.state[:2] for track in self.tracks]).reshape(-1, 2)
        pairs = assigned(expected, np.array([track.kind for track in self.tracks]), found, self.gate_m)
        for track in self.tracks:
            track.misses += 1
        for row, column in pairs:
            self._seen(self.tracks[row], found, column)
        taken = {column for _, column in pairs}
        for column in range(len(found)):
            if column not in taken and found.score[column] >= BEGIN_SCORE:
                self._begin(found, column)
        self.tracks = [track for track in self.tracks if track.misses < MISSES]
        return self._told()

    def _seen(self, track: Track, found: Boxes, column: int) -> None:
        track.filter.corrected(found.centre[column])
        track.size = 0.7 * track.size + 0.3 * found.size[column]
        track.yaw, track.misses, track.hits = float(found.yaw[column]), 0, track.hits + 1
        track.score = max(0.8 * track.score, float(found.score[column]))

    def _begin(self, found: Boxes, column: int) -> None:
        self.tracks.append(
            Track(
                number=self.born, kind=int(found.kind[column]), filter=new_filter(found.centre[column]),
                size=found.size[column], yaw=float(found.yaw[column]), score=float(found.score[column]),
            )
        )  # fmt: skip
        self.born += 1

    def _told(self) -> Boxes:
        sure = [
            track
            for track in self.tracks
            if track.misses <= TOLD_MISSES and (track.hits >= SURE_HITS or track.score >= SURE_SCORE)
        ]
        states = np.array([track.filter.state for track in sure]).reshape(-1, 4)
        # A first box says nothing of a velocity; neither does a wide-open filter.
        known = np.array([track.hits >= SURE_HITS for track in sure], dtype=bool)
        return Boxes(
            ids=np.array([track.number for track in sure], dtype=np.int64),
            kind=np.array([track.kind for track in sure], dtype=np.int64),
            centre=states[:, :2],
            size=np.array([track.size for track in sure]).reshape(-1, 3),
            yaw=np.array([track.yaw for track in sure]),
            velocity=states[:, 2:] * known[:, None],
            # A track that was not seen this time is told with less confidence.
            score=np.array([track.score * 0.7**track.misses for track in sure]),
        )


def assigned(expected: Floats, kinds: Ints, found: Boxes, gate_m: float) -> list[tuple[int, int]]:
    """(track, box) pairs with the least sum of distances, of one kind each and none farther apart than the gate."""
    if not len(expected) or not len(found):
        return []
    away = np.linalg.norm(expected[:, None] - found.centre[None], axis=-1)
    possible = (away <= gate_m) & (kinds[:, None] == found.kind[None])
    # A forbidden pair costs more than all allowed ones together, so that it never displaces one.
    never = gate_m * (min(away.shape) + 1)
    rows, columns = linear_sum_assignment(np.where(possible, away, never))
    return [(int(row), int(column)) for row, column in zip(rows, columns, strict=True) if possible[row, column]]
