"""Symptom tree: which of three things is wrong, what to look at first, and where each answer leads.

>>> drawn = symptom_tree()
>>> drawn.body["width"], drawn.alt.split(":")[0]
(640, 'out of memory')
"""

from threeloops.figures.boxes import Arrow, Box, boxes
from threeloops.figures.figure import Figure

TITLE = "Three symptoms, and what to measure first"
CAPTION = "Green: what you are told. Blue: the first measurement. White: what its answer means, and what to try."
# Told, first look, (answer, what to try).
BRANCHES = (
    (
        "out of memory",
        "peak bytes at\nbatch 1 and batch 2",
        (
            ("grows with the batch", "activations: recompute,\nsmaller micro-batch"),
            ("there at batch 1", "states: shard, or\nnarrower moments"),
            ("grows by the hour", "something is kept:\ncaches, graphs, logs"),
        ),
    ),
    (
        "too slow",
        "one trace: what does\nthe device wait for?",
        (
            ("the host", "loader, launches, syncs"),
            ("other devices", "overlap, buckets,\none slow rank"),
            ("nothing: it is busy", "roofline: bytes or FLOP,\nthen the kernel"),
        ),
    ),
    (
        "wrong numbers",
        "the first bad step;\nthe same in BF16",
        (
            ("NaN in FP16 alone", "overflow: loss scale"),
            ("at every epoch", "order of the data"),
            ("after quantising", "outliers: a scale per\nchannel or token"),
        ),
    ),
)
COLUMN, GAP, TOLD, LOOK, LEAF, BETWEEN = 200, 20, 30, 44, 64, 22
TIP = 5  # pixels that an arrow ends before its box


def symptom_tree() -> Figure:
    """The tree, one column a symptom."""
    plan, arrows = [], []
    for column, (told, look, answers) in enumerate(BRANCHES):
        x = column * (COLUMN + GAP)
        plan += [
            Box(x=x, y=0, width=COLUMN, height=TOLD, text=told, kind="control"),
            Box(x=x, y=TOLD + BETWEEN, width=COLUMN, height=LOOK, text=look, kind="compute"),
        ]
        arrows.append(Arrow(x=x + COLUMN / 2, y=TOLD, to_x=x + COLUMN / 2, to_y=TOLD + BETWEEN - TIP))
        top = TOLD + LOOK + 2 * BETWEEN
        arrows.append(Arrow(x=x + COLUMN / 2, y=top - BETWEEN, to_x=x + COLUMN / 2, to_y=top - TIP))
        for answer, remedy in answers:
            plan.append(Box(x=x, y=top, width=COLUMN, height=LEAF, text=f"{answer}:\n{remedy}", kind="frame"))
            top += LEAF + 6
    alt = " ".join(
        f"{told}: look at {_flat(look)}; " + "; ".join(f"{answer}: {_flat(remedy)}" for answer, remedy in answers) + "."
        for told, look, answers in BRANCHES
    )
    return boxes(plan, title=TITLE, caption=CAPTION, alt=alt, arrows=arrows)


def _flat(text: str) -> str:
    return text.replace("\n", " ")
