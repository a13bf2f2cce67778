"""Loss curves: the loss of several runs against the steps taken.

>>> figure = loss_curves(
...     {"run 1": [(0, 0.5), (100, 0.25)]}, highest=0.5, title="It stops at a quarter", caption="One run."
... )
>>> print(figure.alt)
Loss against steps taken. run 1: from 0.5 at step 0 to 0.25 at step 100.
"""

from collections.abc import Mapping, Sequence

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import layer, nominal, quantitative
from threeloops.figures.figure import Figure

SMALL = 0.001  # a loss below this is on the axis
NAMES = 150  # pixels kept free for the names at the right


def loss_curves(
    runs: Mapping[str, Sequence[tuple[float, float]]], *, highest: float, title: str, caption: str
) -> Figure:
    """One line per run, of (steps taken, loss), told apart by colour and dash, with its name at its end; losses above
    `highest` are cut off.

    Raises:   ValueError without runs, with more than there are colours, or for a run of fewer than two points
    """
    if not 0 < len(runs) <= len(look.SERIES_COLOURS):
        raise ValueError(
            f"{len(runs)} runs; draw 1 to {len(look.SERIES_COLOURS)}, which colours and dashes can tell apart"
        )
    checks.positive(highest=highest)
    for name, points in runs.items():
        if len(points) < 2:
            raise ValueError(f"{name!r} has {len(points)} points; a line needs two")
    names = list(runs)
    rows = [{"steps": step, "loss": loss, "run": name} for name, points in runs.items() for step, loss in points]
    ends = [{"steps": points[-1][0], "loss": points[-1][1], "run": name} for name, points in runs.items()]
    x = quantitative("steps", title="steps taken", scale={"nice": False}, axis={"format": ",d", "tickCount": 6})
    y = quantitative("loss", title="mean squared error", scale={"domain": [0, highest]})
    colour = nominal("run", scale={"domain": names, "range": list(look.SERIES_COLOURS[: len(names)])}, legend=None)
    dash = nominal(
        "run", scale={"domain": names, "range": [list(one) for one in look.SERIES_DASHES[: len(names)]]}, legend=None
    )
    return Figure(
        title=title,
        caption=caption,
        alt="Loss against steps taken. " + " ".join(_sentence(name, points) for name, points in runs.items()),
        body={
            "width": look.PLOT_WIDTH - NAMES,
            "height": 260,
            "layer": [
                layer(
                    {"type": "line", "strokeWidth": 2, "clip": True, "aria": False},
                    rows,
                    x=x,
                    y=y,
                    color=colour,
                    strokeDash=dash,
                ),
                layer(
                    {"type": "text", "align": "left", "dx": 6, "fontSize": look.TEXT, "aria": False},
                    ends,
                    x=x,
                    y=y,
                    text="run",
                    color=colour,
                ),
            ],
        },
    )


def _sentence(name: str, points: Sequence[tuple[float, float]]) -> str:
    (first_step, first_loss), (last_step, last_loss) = points[0], points[-1]
    end = f"{last_loss:.3g}" if last_loss >= SMALL else f"below {SMALL}"
    return f"{name}: from {first_loss:.3g} at step {first_step:,} to {end} at step {last_step:,}."
