"""Chunk steps: an all-reduce step by step. One panel per step, one row per rank, one column per piece; a cell says
how many ranks' numbers are in it.

>>> figure = chunk_steps("ring", ranks=2, title="A ring of two", caption="What to see.")
>>> print(figure.alt)
An all-reduce by ring among 2 ranks, 2 pieces each. Step 1: 2 pieces arrive, 2 of 4 are complete. Step 2: 2 pieces arrive, 4 of 4 are complete.
"""  # noqa: E501

from typing import Any

from threeloops.figures import look
from threeloops.figures.figure import Figure
from threeloops.simulate.training_loop.contributions import watched, whose
from threeloops.simulate.training_loop.network import Array
from threeloops.units import counted

SHADES = ("#ffffff", "#dcebf5", "#a9cfe6", "#6fb0d8", "#0072b2")  # from a rank's own numbers to the whole sum
WIDTH, GAP, MOST = 600, 10, 4  # pixels; panels in a row


def chunk_steps(algorithm: str, *, ranks: int, title: str, caption: str) -> Figure:
    """Every step of an all-reduce. Cells that have just changed have a thick rim; a complete sum is dark.

    Raises:   ValueError for an algorithm that is not simulated step by step
    """
    states = watched(algorithm, ranks=ranks)
    side = (WIDTH - GAP * (MOST - 1)) // MOST - 34
    panels = [_panel(states, step, side) for step in range(len(states))]
    said = " ".join(_sentence(states, step) for step in range(1, len(states)))
    return Figure(
        title=title,
        caption=caption,
        alt=f"An all-reduce by {algorithm} among {ranks} ranks, {ranks} pieces each. {said}",
        body={"concat": panels, "columns": MOST, "spacing": GAP},
    )


def _cells(states: tuple[Array, ...], step: int) -> list[dict[str, Any]]:
    """Numbers in a cell, and whether it has just changed."""
    ranks = len(states[0])
    rows = []
    for rank, pieces in enumerate(states[step].tolist()):
        for piece, bits in enumerate(pieces):
            held = len(whose(bits))
            new = step > 0 and bits != int(states[step - 1][rank, piece])
            shade = SHADES[min(len(SHADES) - 1, round((held - 1) / (ranks - 1) * (len(SHADES) - 1)))]
            rows.append(
                {
                    "rank": str(rank),
                    "piece": "abcdefghijklmnopqrstuvwxyz"[piece],
                    "held": held,
                    "new": new,
                    "shade": shade,
                    "done": held == ranks,
                }
            )
    return rows


def _panel(states: tuple[Array, ...], step: int, side: int) -> dict[str, Any]:
    axis = {"titleFontSize": look.TEXT, "labelAngle": 0, "grid": False, "domain": False, "ticks": False}
    place = {
        "x": {"field": "piece", "type": "nominal", "axis": {**axis, "title": None, "orient": "top"}},
        "y": {"field": "rank", "type": "nominal", "axis": {**axis, "title": "rank" if step % MOST == 0 else None}},
    }
    rim = {"condition": {"test": "datum.new", "value": look.ORANGE}, "value": look.GREY}
    width = {"condition": {"test": "datum.new", "value": 3}, "value": 0.5}
    ink = {"condition": {"test": "datum.done", "value": look.PAPER}, "value": look.INK}
    return {
        "data": {"values": _cells(states, step)},
        "width": side,
        "height": side,
        "title": {
            "text": f"step {step}" if step else "before",
            "fontSize": look.TEXT,
            "anchor": "middle",
            "fontWeight": "normal",
            "color": look.INK,
        },
        "layer": [
            {
                "mark": {"type": "rect", "aria": False},
                "encoding": {
                    **place,
                    "color": {"field": "shade", "type": "nominal", "scale": None},
                    "stroke": rim,
                    "strokeWidth": width,
                },
            },
            {
                "mark": {"type": "text", "fontSize": look.TEXT, "fontWeight": "bold", "aria": False},
                "encoding": {**place, "text": {"field": "held", "type": "quantitative"}, "color": ink},
            },
        ],
    }


def _sentence(states: tuple[Array, ...], step: int) -> str:
    cells = _cells(states, step)
    arrived, complete = sum(cell["new"] for cell in cells), sum(cell["done"] for cell in cells)
    verb = "arrives" if arrived == 1 else "arrive"
    return (
        f"Step {step}: {counted(arrived, 'piece')} {verb}, {complete} of {len(cells)}"
        f" {'is' if complete == 1 else 'are'} complete."
    )
