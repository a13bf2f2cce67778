"""How good detections are: average precision by the distance of centres, and the road's overlap.

The true boxes are the caller's. Pass the world at the moment of capture, and the network is judged; pass the world at
the moment at which the result is used, and the latency is judged with it (streaming perception, Li et al., 2020,
arXiv:2005.10420; for driving, Wang et al., 2022, arXiv:2212.08914).
"""

from collections.abc import Sequence

import numpy as np

from threeloops import checks
from threeloops.simulate.driving.scenes import Boxes, Flags


def average_precision(found: Sequence[Boxes], true: Sequence[Boxes], *, kind: int, within_m: float) -> float:
    """Area under precision over recall of one kind of road user, all frames together; nan where there is nobody.

    Assumes:  a box is right when its centre is within a distance of the centre of a true one of its kind that no box
              with a higher score has taken (Caesar et al., 2020, arXiv:1903.11027, whose mAP averages over 0.5, 1, 2
              and 4 m); here no part of the curve is cut away
    Raises:   ValueError unless both lists have a box list for each frame
    """
    checks.positive(within_m=within_m)
    judged = [_matched(one.of(kind), world.of(kind), within_m) for one, world in zip(found, true, strict=True)]
    everybody = sum(len(world.of(kind)) for world in true)
    if not everybody:
        return float("nan")
    scores = np.concatenate([score for score, _ in judged])
    right = np.concatenate([hit for _, hit in judged])[np.argsort(-scores, kind="stable")]
    hits = np.cumsum(right)
    precision = hits / np.arange(1, len(right) + 1)
    # At each recall the best precision at that recall or beyond, as the field draws the curve.
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    return float((envelope * right).sum() / everybody)


def _matched(found: Boxes, true: Boxes, within_m: float) -> tuple[np.ndarray, np.ndarray]:
    """(scores, 1 where right): the surest box takes its nearest true one first."""
    order = np.argsort(-found.score, kind="stable")
    right = np.zeros(len(found))
    if not len(true) or not len(found):
        return found.score[order], right
    away = np.linalg.norm(found.centre[order, None] - true.centre[None], axis=-1)
    for row in range(len(found)):
        nearest = int(away[row].argmin())
        if away[row, nearest] <= within_m:
            right[row] = 1.0
            away[:, nearest] = np.inf  # taken
    return found.score[order], right


def road_iou(found: Sequence[Flags], true: Sequence[Flags]) -> float:
    """Cells that both call road, out of those that either does, all frames together.

    >>> road_iou([np.array([True, True, False])], [np.array([False, True, True])])
    0.3333333333333333
    """
    both = sum(int((one & other).sum()) for one, other in zip(found, true, strict=True))
    either = sum(int((one | other).sum()) for one, other in zip(found, true, strict=True))
    return both / either if either else float("nan")
