"""Module chain: the same stages twice, with what passes between them: a list that people defined, or tensors through
which the plan's loss reaches back.

>>> figure = module_chain(
...     {"apart": ("see", "plan")},
...     passed={"apart": "boxes"},
...     taught={"apart": ("labels", "paths")},
...     title="Apart",
...     caption="A sketch.",
... )
>>> print(figure.alt)
Apart. apart: see, plan; between them: boxes; trained on: labels, paths.
"""

from collections.abc import Mapping, Sequence

from threeloops.figures.boxes import Arrow, Box, boxes
from threeloops.figures.figure import Figure

WIDTH, HEIGHT, GAP, ROW = 128, 40, 72, 146


def module_chain(
    chains: Mapping[str, Sequence[str]],
    *,
    passed: Mapping[str, str],
    taught: Mapping[str, Sequence[str]],
    title: str,
    caption: str,
) -> Figure:
    """One row per chain: its modules, what passes between them, and below each module what it is trained on; one
    label for all of them is drawn as one wide box.

    Raises:   ValueError if a chain has neither one label nor one per module
    """
    plan, arrows = [], []
    for row, (name, modules) in enumerate(chains.items()):
        labels, top = taught[name], row * ROW
        if len(labels) not in (1, len(modules)):
            raise ValueError(f"{name!r} has {len(modules)} modules and {len(labels)} labels; give 1 or {len(modules)}")
        plan.append(Box(x=0, y=top, width=_left(len(modules)) - GAP, height=20, kind="off", text=name))
        for place, module in enumerate(modules):
            plan.append(Box(x=_left(place), y=top + 32, width=WIDTH, height=HEIGHT, kind="compute", text=module))
            if place:
                start, middle = _left(place) - GAP, top + 32 + HEIGHT / 2
                arrows.append(Arrow(x=start + 2, y=middle, to_x=start + GAP - 8, to_y=middle))
                plan.append(Box(x=start + 2, y=middle - 25, width=GAP - 4, height=18, kind="off", text=passed[name]))
        for place, label in enumerate(labels):
            wide = WIDTH if len(labels) > 1 else _left(len(modules)) - GAP
            plan.append(Box(x=_left(place), y=top + 98, width=wide, height=26, kind="control", text=label))
        for place in range(len(modules)):
            across = _left(place) + WIDTH / 2
            arrows.append(Arrow(x=across, y=top + 96, to_x=across, to_y=top + 32 + HEIGHT + 6))
    told = " ".join(
        f"{name}: {', '.join(modules)}; between them: {passed[name]}; trained on: {', '.join(taught[name])}."
        for name, modules in chains.items()
    )
    return boxes(plan, title=title, caption=caption, alt=f"{title}. {told}", arrows=arrows)


def _left(place: int) -> float:
    return place * (WIDTH + GAP)
