"""Chunk steps: an all-reduce step by step. One panel per step, one row per rank, one column per piece; a cell says
how many ranks' numbers are in it.

>>> figure = chunk_steps("ring", ranks=2, title="A ring of two", caption="What to see.")
>>> print(figure.alt)
An all-reduce by ring among 2 ranks, 2 pieces each. Step 1: 2 pieces arrive, 2 of 4 are complete. Step 2: 2 pieces arrive, 4 of 4 are complete.
"""  # noqa: E501

from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.simulate.training_loop.contributions import watched, watched_run, whose
from threeloops.simulate.training_loop.network import Run, State
from threeloops.training_loop.network.collectives import bus_factor
from threeloops.units import counted

SHADES = ("#ffffff", "#dcebf5", "#a9cfe6", "#6fb0d8", "#0072b2")  # from a rank's own numbers to the whole sum
WIDTH, GAP, MOST = 600, 10, 4  # pixels; panels in a row
ALONE, ROW = 264, 56  # pixels: of a panel that stands alone at most, and of one rank in it


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


def one_step(algorithm: str, *, ranks: int, step: int, title: str, caption: str) -> Figure:
    """What the ranks hold after so many steps, and beside it what each has sent, up to what the busiest must send.

    Raises:   ValueError for an algorithm that is not simulated step by step, or a step that it does not have
    """
    done = watched_run(algorithm, ranks=ranks)
    checks.count(at_least=0, step=step)
    if step > done.steps:
        raise ValueError(f"step={step} must be at most {done.steps}, the last step of {algorithm!r} with {ranks} ranks")
    sent = sent_vectors(done, step)
    least = bus_factor(op="all_reduce", ranks=ranks)
    side = min(ALONE, ROW * ranks)
    said = _sentence(done.states, step) if step else "Before the first step."
    told = ", ".join(f"{number:.3g}" for number in sent)
    return Figure(
        title=title,
        caption=caption,
        alt=f"An all-reduce by {algorithm} among {ranks} ranks. {said} Vectors sent by ranks 0 to {ranks - 1}: {told}.",
        body={
            "hconcat": [_panel(done.states, step, side), _bars(sent, least, max(sent_vectors(done, done.steps)), side)]
        },
    )


def sent_vectors(done: Run, step: int) -> list[float]:
    """What each rank has sent in so many steps, in whole vectors."""
    sent = [0.0] * done.ranks
    for message in done.messages:
        if message.step < step:
            sent[message.source] += message.num_bytes / done.outputs[0].nbytes
    return sent


def _bars(sent: list[float], least: float, most: float, height: int) -> dict[str, Any]:
    axis = {"titleFontSize": look.TEXT, "labelFontSize": look.TEXT, "grid": False, "tickCount": 4}
    scale = {"domain": [0, 1.05 * max(most, least)]}
    rows = [{"rank": str(rank), "sent": number} for rank, number in enumerate(sent)]
    rule = {"color": look.ORANGE, "type": "rule", "size": 2, "strokeDash": [5, 3], "aria": False}
    return {
        "width": ALONE - 40,
        "height": height,
        "title": {
            "text": f"vectors sent; dashed: the least, {least:.3g}",
            "fontSize": look.TEXT,
            "anchor": "start",
            "fontWeight": "normal",
            "color": look.INK,
        },
        "layer": [
            layer(
                {"type": "bar", "color": look.BLUE},
                rows,
                y=nominal("rank", axis={**axis, "title": "rank", "ticks": False}),
                x=quantitative("sent", scale=scale, axis={**axis, "title": None}),
            ),
            layer(rule, [{"least": least}], x=quantitative("least", scale=scale)),
        ],
    }


def _cells(states: tuple[State, ...], step: int) -> list[dict[str, Any]]:
    """Numbers in a cell, and whether it has just changed."""
    ranks = len(states[0])
    rows = []
    for rank, pieces in enumerate(states[step]):
        for piece, bits in enumerate(pieces):
            held = len(whose(bits))
            new = step > 0 and bits != states[step - 1][rank][piece]
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


def _panel(states: tuple[State, ...], step: int, side: int) -> dict[str, Any]:
    axis = {"titleFontSize": look.TEXT, "labelAngle": 0, "grid": False, "domain": False, "ticks": False}
    place = {
        "x": nominal("piece", axis={**axis, "title": None, "orient": "top"}),
        "y": nominal("rank", axis={**axis, "title": "rank" if step % MOST == 0 else None}),
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
            layer(
                {"type": "rect", "aria": False},
                **place,
                color=nominal("shade", scale=None),
                stroke=rim,
                strokeWidth=width,
            ),
            layer(
                {"type": "text", "fontSize": look.TEXT, "fontWeight": "bold", "aria": False},
                **place,
                text=quantitative("held"),
                color=ink,
            ),
        ],
    }


def _sentence(states: tuple[State, ...], step: int) -> str:
    cells = _cells(states, step)
    arrived, complete = sum(cell["new"] for cell in cells), sum(cell["done"] for cell in cells)
    verb = "arrives" if arrived == 1 else "arrive"
    return (
        f"Step {step}: {counted(arrived, 'piece')} {verb}, {complete} of {len(cells)}"
        f" {'is' if complete == 1 else 'are'} complete."
    )
