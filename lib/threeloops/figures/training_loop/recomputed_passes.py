"""Recomputed passes: a training step that keeps everything above one that runs its layers again; below each pass a bar
with what is kept meanwhile.

>>> figure = recomputed_passes(num_layers=4, block_bytes=34, input_bytes=2, title="A third more work", caption="Llama.")
>>> print(figure.alt)
keep everything: 12 units of work, 136 bytes at most. run layers again: 16 units of work, 40 bytes at most. Order of the second: F1, F2, F3, F4, F4, B4, F3, B3, F2, B2, F1, B1.
"""  # noqa: E501

from dataclasses import dataclass

from threeloops import checks
from threeloops.figures.boxes import LINE, Box, boxes
from threeloops.figures.figure import Figure
from threeloops.simulate.training_loop.recomputed_step import Step, Stretch, even_stretches, play

WIDTH, PASS, BARS, GAP, NAME = (
    600,
    34,
    72,
    22,
    92,
)  # pixels: of all work, a pass, the highest bar, two rows, a row's name
WORK = {"forward": 1, "backward": 2}  # units: a backward pass takes twice its forward pass


@dataclass(frozen=True, slots=True)
class _Pass:
    """One layer forward or backward: what is written on it, when it begins, how long it takes, what is kept."""

    text: str
    start: int
    work: int
    again: bool
    kept_bytes: float


def recomputed_passes(*, num_layers: int, block_bytes: float, input_bytes: float, title: str, caption: str) -> Figure:
    """Two rows, drawn as simulate/training_loop/recomputed_step.py plays them.

    Assumes:  a backward pass takes twice its forward pass, and needs what was there before it until it has ended
    """
    checks.count(num_layers=num_layers)
    checks.positive(block_bytes=block_bytes, input_bytes=input_bytes)
    sizes = {"block_bytes": block_bytes, "input_bytes": input_bytes}
    ways = {
        "keep everything": play([Stretch(layers=num_layers, again=False)], **sizes),
        "run layers again": play(even_stretches(num_layers=num_layers, every=1), **sizes),
    }
    rows = {name: _passes(step) for name, step in ways.items()}
    ends = {name: row[-1].start + row[-1].work for name, row in rows.items()}
    pixels = WIDTH / max(ends.values())
    height = BARS / max(step.peak_bytes for step in ways.values())
    plan, told = [], []
    for place, (name, row) in enumerate(rows.items()):
        y = place * (PASS + BARS + GAP)
        plan.append(Box(x=0, y=y, width=NAME, height=PASS, kind="off", text="\n".join(name.rsplit(" ", 1))))
        for one in row:
            plan += _drawn(one, y, pixels, height)
        most = max(one.kept_bytes for one in row)
        told.append(f"{name}: {ends[name]} units of work, {most:g} bytes at most")
    order = ", ".join(one.text for one in rows["run layers again"])
    alt = f"{'. '.join(told)}. Order of the second: {order}."
    return boxes(plan, title=title, caption=caption, alt=alt, to_scale=(NAME + 12, NAME + 12 + WIDTH))


def _passes(step: Step) -> list[_Pass]:
    """The moments of a step as passes; a layer that runs forward a second time does so `again`."""
    row: list[_Pass] = []
    start, before, seen = 0, 0.0, set()
    for moment in step.moments:
        kind, layer = moment.what.split()
        text = f"{kind[0].upper()}{layer}"
        row.append(_Pass(text, start, WORK[kind], text in seen, max(before, moment.alive_bytes)))
        start, before = start + WORK[kind], moment.alive_bytes
        seen.add(text)
    return row


def _drawn(one: _Pass, y: float, pixels: float, height: float) -> list[Box]:
    """A pass, and below it its bar, with the bytes in it where there is room."""
    x, width = NAME + 12 + one.start * pixels, one.work * pixels - 3
    tall = max(2.0, one.kept_bytes * height)
    said = f"{one.kept_bytes:g}" if tall >= LINE else ""
    kind = "control" if one.again else "compute"
    above = Box(x=x, y=y, width=width, height=PASS, kind=kind, text=one.text)
    return [above, Box(x=x, y=y + PASS + 3 + BARS - tall, width=width, height=tall, kind="memory", text=said)]
