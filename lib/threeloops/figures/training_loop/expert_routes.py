"""Expert routes: every token of a few ranks, the experts that it chose, and the ranks that hold them.

>>> figure = expert_routes([[0, 1], [0, 2], [0, 3], [2, 3]], num_experts=4, ranks=2, title="A quarter leaves", caption="Two ranks.")
>>> print(figure.alt)
2 of 8 copies leave their rank. Expert 0 is the busiest, taking 3 where the mean is 2. Rank 0 sends 1, receives 1 and holds experts 0 to 1, which take 4. \
Rank 1 sends 1, receives 1 and holds experts 2 to 3, which take 4.
"""  # noqa: E501

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.boxes import Box, boxes
from threeloops.figures.figure import Figure

WIDTH, GAP, MARGIN = 640, 12, 5  # pixels: of the picture, between ranks, inside a rank
HEAD, TOKEN, BETWEEN, EXPERT, FOOT = 24, 30, 150, 46, 24  # heights, from top to bottom
LINES: dict[bool, dict[str, Any]] = {
    True: {"color": look.BLUE, "strokeWidth": 1.4},
    False: {"color": look.GREY, "strokeDash": [3, 3]},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A token's vector on its way to one of the experts that the token chose."""

    token: int
    expert: int
    source: int  # rank
    destination: int

    @property
    def leaves(self) -> bool:
        return self.source != self.destination


def copies_of(choices: Sequence[Sequence[int]], *, num_experts: int, ranks: int) -> list[Copy]:
    """Every choice with the rank that it starts from and the rank that it goes to; tokens and experts are dealt out in
    order.

    Raises:   ValueError where the ranks divide the tokens or the experts unevenly

    >>> [copy.leaves for copy in copies_of([[0], [0]], num_experts=2, ranks=2)]
    [False, True]
    """
    checks.divides(part="ranks", part_value=ranks, whole="tokens", whole_value=len(choices))
    checks.divides(part="ranks", part_value=ranks, whole="experts", whole_value=num_experts)
    tokens_each, experts_each = len(choices) // ranks, num_experts // ranks
    return [
        Copy(token=token, expert=expert, source=token // tokens_each, destination=expert // experts_each)
        for token, chosen in enumerate(choices)
        for expert in chosen
    ]


def expert_routes(
    choices: Sequence[Sequence[int]], *, num_experts: int, ranks: int, title: str, caption: str
) -> Figure:
    """A frame a rank: its tokens above, its experts below; a line that leaves its frame is a copy on the network."""
    copies = copies_of(choices, num_experts=num_experts, ranks=ranks)
    loads = [sum(copy.expert == expert for copy in copies) for expert in range(num_experts)]
    plan = [box for rank in range(ranks) for box in _frame(rank, ranks, copies)]
    plan += [
        Box(**_spot(token, len(choices), ranks), y=HEAD, height=TOKEN, kind="memory", text=f"t{token}")
        for token in range(len(choices))
    ]
    plan += [
        Box(
            **_spot(expert, num_experts, ranks),
            y=HEAD + TOKEN + BETWEEN,
            height=EXPERT,
            kind="compute",
            text=f"expert {expert}\ntakes {load}",
        )
        for expert, load in enumerate(loads)
    ]
    figure = boxes(plan, title=title, caption=caption, alt=_said(copies, loads, ranks))
    layers = list(figure.body["layer"])
    for leaves, style in LINES.items():
        lines = [_line(copy, len(choices), num_experts, ranks) for copy in copies if copy.leaves is leaves]
        mark = {"type": "rule", "aria": False, **style}
        layers.append({"data": {"values": lines}, "mark": mark, "encoding": layers[2]["encoding"]})
    return replace(figure, body={**figure.body, "layer": layers})


def _spot(number: int, total: int, ranks: int) -> dict[str, Any]:
    """Left edge and width of a token or an expert in the frame of its rank."""
    frame = (WIDTH - GAP * (ranks - 1)) / ranks
    each = total // ranks
    cell = (frame - 2 * MARGIN) / each
    rank, place = divmod(number, each)
    return {"x": rank * (frame + GAP) + MARGIN + place * cell + 1, "width": cell - 2}


def _middle(number: int, total: int, ranks: int) -> float:
    spot = _spot(number, total, ranks)
    return float(spot["x"] + spot["width"] / 2)


def _line(copy: Copy, tokens: int, num_experts: int, ranks: int) -> dict[str, float]:
    return {
        "x": _middle(copy.token, tokens, ranks),
        "y": HEAD + TOKEN,
        "x2": _middle(copy.expert, num_experts, ranks),
        "y2": HEAD + TOKEN + BETWEEN,
    }


def _frame(rank: int, ranks: int, copies: list[Copy]) -> list[Box]:
    frame = (WIDTH - GAP * (ranks - 1)) / ranks
    left, height = rank * (frame + GAP), HEAD + TOKEN + BETWEEN + EXPERT + FOOT
    sent, received = _crossing(rank, copies)
    words = f"sends {sent}, receives {received}"
    return [
        Box(x=left, y=0, width=frame, height=height, kind="frame", text=f"rank {rank}", at_top=True),
        Box(x=left + 2, y=height - FOOT + 2, width=frame - 4, height=FOOT - 4, kind="bare", text=words),
    ]


def _crossing(rank: int, copies: list[Copy]) -> tuple[int, int]:
    """Copies that a rank sends to others and receives from them."""
    away = [copy for copy in copies if copy.leaves]
    return sum(copy.source == rank for copy in away), sum(copy.destination == rank for copy in away)


def _said(copies: list[Copy], loads: list[int], ranks: int) -> str:
    each, busiest = len(loads) // ranks, loads.index(max(loads))
    told = [
        f"{sum(copy.leaves for copy in copies)} of {len(copies)} copies leave their rank",
        f"Expert {busiest} is the busiest, taking {max(loads)} where the mean is {len(copies) / len(loads):g}",
    ]
    for rank in range(ranks):
        sent, received = _crossing(rank, copies)
        told.append(
            f"Rank {rank} sends {sent}, receives {received} and holds experts {rank * each} to"
            f" {(rank + 1) * each - 1}, which take {sum(loads[rank * each : (rank + 1) * each])}"
        )
    return ". ".join(told) + "."
