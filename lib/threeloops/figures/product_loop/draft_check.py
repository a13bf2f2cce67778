"""Draft check: one round of speculative decoding as boxes: what stood there, what was drafted, what the target said of
it in one step, and what is kept.

>>> figure = draft_check(
...     text=("the",), drafted=("cat", "sat", "in"), accepted=2, own="on", title="Three tokens", caption="k = 3."
... )
>>> print(figure.alt)
Three tokens. Text: the. Drafted: cat, sat, in. Accepted: cat, sat. Refused: in. The target's own token: on. Kept: 3 tokens from one step of the target.
"""  # noqa: E501

from collections.abc import Sequence

from threeloops.figures.boxes import Arrow, Box, boxes
from threeloops.figures.figure import Figure

WIDTH, HEIGHT, GAP, ROW = 74, 34, 6, 62
NAMES = 92  # pixels for the names of the rows


def draft_check(
    *, text: Sequence[str], drafted: Sequence[str], accepted: int, own: str, title: str, caption: str
) -> Figure:
    """Three rows: drafted one after the other, checked together, kept.

    Raises:   ValueError if more are accepted than drafted
    """
    if not 0 <= accepted <= len(drafted):
        raise ValueError(f"accepted={accepted} must be between 0 and the {len(drafted)} drafted tokens")
    verdicts = ["yes"] * accepted + ["no"] * (accepted < len(drafted))
    verdicts += ["not judged"] * (len(drafted) - len(verdicts))
    plan = [_named(row, name) for row, name in enumerate(("draft", "target", "kept"))]
    for place, word in enumerate(text):
        plan += [_box(place, row, word, "frame") for row in (0, 1, 2)]
    for place, (word, verdict) in enumerate(zip(drafted, verdicts, strict=True), start=len(text)):
        plan.append(_box(place, 0, word, "memory"))
        plan.append(_box(place, 1, verdict, "compute" if verdict == "yes" else "off"))
        if verdict == "yes":
            plan.append(_box(place, 2, word, "memory"))
    plan.append(_box(len(text) + accepted, 2, own, "control"))
    downs = [
        Arrow(x=_left(place) + WIDTH / 2, y=HEIGHT + 2, to_x=_left(place) + WIDTH / 2, to_y=ROW - 4)
        for place in range(len(text), len(text) + len(drafted))
    ]
    kept, refused = list(drafted[:accepted]), list(drafted[accepted : accepted + 1])
    alt = (
        f"{title}. Text: {' '.join(text)}. Drafted: {', '.join(drafted)}. Accepted: {', '.join(kept) or 'none'}."
        f" Refused: {', '.join(refused) or 'none'}. The target's own token: {own}. Kept: {accepted + 1} tokens from one"
        " step of the target."
    )
    return boxes(plan, title=title, caption=caption, alt=alt, arrows=downs)


def _left(place: int) -> float:
    return NAMES + place * (WIDTH + GAP)


def _box(place: int, row: int, text: str, kind: str) -> Box:
    return Box(x=_left(place), y=row * ROW, width=WIDTH, height=HEIGHT, kind=kind, text=text)


def _named(row: int, name: str) -> Box:
    return Box(x=0, y=row * ROW, width=NAMES - GAP, height=HEIGHT, kind="off", text=name)
