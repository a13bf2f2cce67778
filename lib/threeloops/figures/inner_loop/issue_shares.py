"""Issue shares: how busy a scheduler is with so many resident warps, counted and predicted.

>>> curve = Curve(name="1 load, 9 instructions", predicted=((1, 0.02), (41, 1.0)), counted=((1, 0.02), (8, 0.2)))
>>> print(issue_shares([curve], title="Many warps hide a wait", caption="One scheduler.").alt)
Cycles with an issue grow with the resident warps. 1 load, 9 instructions: counted 1 warp 2.00 %, 8 warps 20.0 %.
>>> kind = {"loads": 4, "instructions": 36, "latency_cycles": 700}
>>> curve_of("4 loads at once", kind, predict_for=range(1, 17), count_for=(8, 16)).sentence
'4 loads at once: counted 8 warps 43.3 %, 16 warps 86.6 %'
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.inner_loop import latency_hiding
from threeloops.simulate.inner_loop import warp_scheduler
from threeloops.units import counted, fmt_percent


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One kind of warp: (resident warps, share) as predicted, drawn as a line, and as counted, drawn as points.
    Either may be empty.
    """

    name: str
    predicted: tuple[tuple[int, float], ...]
    counted: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        for warps, share in self.predicted + self.counted:
            checks.count(warps=warps)
            checks.fraction(share=share)

    @property
    def sentence(self) -> str:
        return f"{self.name}: counted " + ", ".join(
            f"{counted(warps, 'warp')} {fmt_percent(share)}" for warps, share in self.counted
        )


def curve_of(name: str, kind: Mapping[str, int], *, predict_for: Iterable[int], count_for: Iterable[int]) -> Curve:
    """One kind of warp, by the formula and by the greedy simulator, after its first four turns. `kind` has `loads`,
    `instructions` and `latency_cycles`.
    """
    turn = latency_hiding.Turn(**kind)
    plays = {warps: warp_scheduler.play(warps=warps, turns=8, policy="greedy", **kind) for warps in count_for}
    return Curve(
        name=name,
        predicted=tuple((warps, latency_hiding.issue_share(turn, warps=warps)) for warps in predict_for),
        counted=tuple((warps, played.issue_share(skip_turns=4)) for warps, played in plays.items()),
    )


def issue_shares(curves: Sequence[Curve], *, title: str, caption: str) -> Figure:
    """Lines are predicted, points are counted.

    Raises:   ValueError for more curves than there are line styles
    """
    if not 0 < len(curves) <= len(look.SERIES_COLOURS):
        raise ValueError(f"{len(curves)} curves were given; 1 to {len(look.SERIES_COLOURS)} can be told apart")
    names = [curve.name for curve in curves]
    last = max(warps for curve in curves for warps, _ in curve.predicted + curve.counted)
    return Figure(
        title=title,
        caption=caption,
        alt="Cycles with an issue grow with the resident warps. "
        + " ".join(f"{curve.sentence}." for curve in curves if curve.counted),
        body={
            "width": look.PLOT_WIDTH,
            "height": 280,
            "encoding": {
                "x": _axis("warps", "resident warps per scheduler", [0, last], ",d"),
                "y": _axis("share", "cycles with an issue (%)", [0, 100], "d"),
            },
            "layer": [
                layer(
                    {"type": "line", "strokeWidth": 1.5, "aria": False},
                    [_row(curve, *point) for curve in curves for point in curve.predicted],
                    color=_series(names, look.SERIES_COLOURS),
                    strokeDash=_series(names, look.SERIES_DASHES, legend=False),
                ),
                layer(
                    {"type": "point", "filled": True, "size": 80, "opacity": 1},
                    [_row(curve, *point) for curve in curves for point in curve.counted],
                    color=_series(names, look.SERIES_COLOURS),
                    shape=_series(names, look.SERIES_SHAPES),
                    **WORDS,
                ),
            ],
        },
    )


def _row(curve: Curve, warps: int, share: float) -> dict[str, Any]:
    return {
        "curve": curve.name,
        "warps": warps,
        "share": 100 * share,
        "words": f"{curve.name}: {counted(warps, 'warp')}, {fmt_percent(share)} of cycles",
    }


def _axis(field: str, title: str, domain: list[int], form: str) -> dict[str, Any]:
    return quantitative(field, title=title, scale={"domain": domain, "nice": False}, axis={"format": form})


def _series(names: Sequence[str], styles: Sequence[object], *, legend: bool = True) -> dict[str, Any]:
    plain = nominal("curve", sort=list(names), scale={"domain": list(names), "range": list(styles[: len(names)])})
    return {**plain, "legend": {"orient": "top", "title": None, "symbolStrokeWidth": 0.5} if legend else None}
