"""Deadline view: what the explorer shows for a state, as figure, sentences and table. No widget in here: it is computed
and tested without a browser.

>>> shown = view(START)
>>> shown.summary.split(":")[0]
'At 1.00 s the newest answer is 100 ms old'
"""

import math
import statistics
from dataclasses import dataclass
from typing import Any

from threeloops import checks
from threeloops.driving import latency_budget
from threeloops.facts import recorded_drive
from threeloops.facts.recorded_drive import Car
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import fmt_percent, fmt_seconds, ms
from threeloops.widgets.driving import deadline_replay as replay
from threeloops.widgets.view import View

STAGES = recorded_drive.drive().stages
OWN_S = (None, *(n * ms for n in (*range(31), *range(35, 61, 5))))  # of a stage: None is as recorded
COLUMNS = ("", "now", "over the two seconds")
CLOCKS = {False: "quiet", True: "crowded"}
AHEAD, BEHIND, SIDE = 36, -20, 15  # metres that are drawn
PANEL, BARS, VIEW = 560, 58, 300  # pixels
REACH_MS = 140  # of the axis, at least
SHADES = (look.BLUE, "#56a0cf", "#8fc1e3", look.GREEN, look.PINK, look.GREY, look.INK)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the controls stand."""

    shared: bool
    int8: bool
    predicted: bool
    queue: bool
    crowded: bool
    stage: str  # the one whose time can be set
    own: tuple[float | None, ...]  # of every stage; None is as recorded
    moment: int

    def __post_init__(self) -> None:
        checks.one_of(STAGES, stage=self.stage)
        checks.count(at_least=0, moment=self.moment)
        if self.moment > replay.moments():
            raise ValueError(f"moment={self.moment} must be at most {replay.moments()}")

    @property
    def chain(self) -> replay.Chain:
        way = f"{'shared' if self.shared else 'separate'} {'int8' if self.int8 else 'fp32'}"
        return replay.Chain(way=way, clock=CLOCKS[self.crowded], own_s=self.own, queue=self.queue)

    @property
    def own_s(self) -> float | None:
        """The own time of the chosen stage."""
        return self.own[STAGES.index(self.stage)]

    @property
    def set_s(self) -> tuple[float, ...]:
        """Of every stage, the time that its box shows: the reader's own, or the recorded one."""
        return tuple(seen if told is None else told for told, seen in zip(self.own, replay.recorded_s(), strict=True))


START = State(
    shared=False, int8=False, predicted=False, queue=False, crowded=False,
    stage="backbone", own=replay.RECORDED, moment=120,
)  # fmt: skip


def view(state: State) -> View:
    """What to show for a state."""
    now = replay.replayed(state.chain, predicted=state.predicted, moment=state.moment)
    all_of_it = replay.whole(state.chain, predicted=state.predicted)
    stages = _medians(state.chain)
    total, slowest = sum(seconds for _, seconds in stages), max(map(sum, replay.stage_seconds(state.chain)))
    told, rows = _summary(state, now, all_of_it), (_frame_row(total, slowest), *_rows(now, all_of_it))
    kept = "in time" if total <= replay.period_s() else "late"
    figure = Figure(
        title=f"{fmt_seconds(total)} a frame, {kept}; {fmt_percent(all_of_it.found_share)} of cars within half a metre",
        caption=(
            "Above: the chain's stages, median of the drive; red is the camera's period, thin the slowest frame. Below,"
            " seen from the vehicle, which drives to the right: cars in grey, and the newest answer's boxes, blue or,"
            " half a metre off or more, orange and dashed; cars beyond the frame count too. A time that you set is of"
            " one FP32 backbone without neighbours; repairs change it as recorded."
            f" Recorded {recorded_drive.drive().stamp['measured']} on {recorded_drive.drive().stamp['hardware']}."
        ),
        alt=told,
        body={"vconcat": [_bars(stages, slowest), _birds_eye(now)], "spacing": 14},
    )
    return View(columns=COLUMNS, figure=figure, summary=told, rows=rows)


def _summary(state: State, now: replay.Shown, all_of_it: replay.Whole) -> str:
    own = [f"{name} {fmt_seconds(one)}" for name, one in zip(STAGES, state.own, strict=True) if one is not None]
    yours = f" Your times: {', '.join(own)}." if own else ""
    at = f"At {state.moment * replay.period_s() / replay.PER_FRAME:.2f} s"
    if now.frame is None:
        return f"{at} no answer is ready yet; the first frame is still being worked on.{yours}"
    road = latency_budget.distance_m(speed_m_per_s=now.speed_m_per_s, seconds=now.age_s)
    return (
        f"{at} the newest answer is {fmt_seconds(now.age_s)} old: {road:.2f} m of own road. {now.found} of"
        f" {len(now.true)} cars have a box within half a metre; over the two seconds"
        f" {fmt_percent(all_of_it.found_share)}. {all_of_it.answers_per_s:.1f} answers a second from"
        f" {recorded_drive.drive().rate_hz} frames.{yours}"
    )


def _frame_row(median_s: float, slowest_s: float) -> tuple[str, str, str]:
    return ("work on a frame", "", f"median {fmt_seconds(median_s)}, slowest {fmt_seconds(slowest_s)}")


def _rows(now: replay.Shown, all_of_it: replay.Whole) -> tuple[tuple[str, ...], ...]:
    def metres(seconds: float) -> str:
        return f"{latency_budget.distance_m(speed_m_per_s=now.speed_m_per_s, seconds=seconds):.2f} m"

    return (
        ("age of the answer", fmt_seconds(now.age_s), f"mean {fmt_seconds(all_of_it.mean_age_s)}"),
        ("largest age", "", fmt_seconds(all_of_it.largest_age_s)),
        ("own road in that time", metres(now.age_s), f"at the largest {metres(all_of_it.largest_age_s)}"),
        ("answers a second", "", f"{all_of_it.answers_per_s:.1f}"),
        ("cars within 0.5 m", f"{now.found} of {len(now.true)}", fmt_percent(all_of_it.found_share)),
    )


def _medians(chain: replay.Chain) -> list[tuple[str, float]]:
    stages = recorded_drive.drive().stages
    return [
        (name, statistics.median(column))
        for name, column in zip(stages, zip(*replay.stage_seconds(chain), strict=True), strict=True)
    ]


def _bars(stages: list[tuple[str, float]], slowest_s: float) -> dict[str, Any]:
    rows, begin = [], 0.0
    for name, seconds in stages:
        end = begin + seconds / ms
        words = f"{name}: {fmt_seconds(seconds)}"
        rows.append({"stage": name, "from": begin, "to": end, "words": words})
        begin = end
    reach_ms = max(REACH_MS, 20 * math.ceil(max(begin, slowest_s / ms) / 20))
    x = quantitative(scale={"domain": [0, reach_ms], "nice": False}, title="ms of a frame")
    seen = [name for name, seconds in stages if seconds / ms > reach_ms / PANEL]  # wide enough for a pixel
    return {
        "width": PANEL - 20,
        "height": BARS,
        "layer": [
            layer(
                {"type": "bar", "size": 30},
                rows,
                x={"field": "from", **x},
                x2="to",
                color=nominal(
                    "stage",
                    scale={"domain": list(STAGES), "range": list(SHADES)},
                    legend={"columns": 7, "symbolSize": 70, "values": seen},
                ),
                **WORDS,
            ),
            _mark(replay.period_s() / ms, x, "#c00000", 4, f"camera's period {fmt_seconds(replay.period_s())}"),
            _mark(slowest_s / ms, x, look.INK, 2, f"slowest frame {fmt_seconds(slowest_s)}"),
        ],
    }


def _mark(at_ms: float, x: dict[str, Any], colour: str, width: int, words: str) -> dict[str, Any]:
    return layer(
        {"type": "rule", "color": colour, "strokeWidth": width},
        [{"at": at_ms, "words": words}],
        x={"field": "at", **x},
        **WORDS,
    )


def _birds_eye(now: replay.Shown) -> dict[str, Any]:
    x = quantitative(scale={"domain": [BEHIND, AHEAD], "nice": False}, title="metres ahead")
    y = quantitative(scale={"domain": [-SIDE, SIDE], "nice": False}, title="metres to the left")
    own = Car(number=-1, x_m=0, y_m=0, yaw_rad=0, length_m=4.5, width_m=1.9)
    boxes = list(zip(now.believed, now.off_m, strict=True))
    near = [car for car, off in boxes if off <= replay.WITHIN_M]
    far = [car for car, off in boxes if off > replay.WITHIN_M]
    words = [
        {"x": car.x_m, "y": car.y_m, "words": f"box {off:.2f} m from the nearest car"}
        for car, off in boxes
        if _drawn(car)
    ]
    return {
        "width": PANEL - 20,
        "height": VIEW,
        "layer": [
            _outlines(now.true, x, y, {"fill": look.RULE, "stroke": look.GREY, "strokeWidth": 1}),
            _outlines((own,), x, y, {"fill": look.INK, "stroke": look.INK, "strokeWidth": 1}),
            _outlines(near, x, y, {"stroke": look.BLUE, "strokeWidth": 2.5}),
            _outlines(far, x, y, {"stroke": look.ORANGE, "strokeWidth": 2.5, "strokeDash": [5, 3]}),
            layer(
                {"type": "point", "size": 14, "filled": True, "color": look.INK, "opacity": 1},
                words,
                x={"field": "x", **x},
                y={"field": "y", **y},
                **WORDS,
            ),
        ],
    }


def _drawn(car: Car) -> bool:
    return BEHIND + 2 < car.x_m < AHEAD - 2 and abs(car.y_m) < SIDE - 1


def _outlines(cars: Any, x: dict[str, Any], y: dict[str, Any], style: dict[str, Any]) -> dict[str, Any]:
    rows = []
    for number, car in enumerate(car for car in cars if _drawn(car)):
        cosine, sine = math.cos(car.yaw_rad), math.sin(car.yaw_rad)
        for order, (along, left) in enumerate(((1, 1), (1, -1), (-1, -1), (-1, 1))):
            dx, dy = along * car.length_m / 2, left * car.width_m / 2
            place = {"x": car.x_m + cosine * dx - sine * dy, "y": car.y_m + sine * dx + cosine * dy}
            rows.append({"car": number, "order": order, **place})
    return layer(
        {"type": "line", "interpolate": "linear-closed", "aria": False, **style},
        rows,
        x={"field": "x", **x},
        y={"field": "y", **y},
        detail=nominal("car"),
        order="order",
    )
