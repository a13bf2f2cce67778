"""Shard stages: what one of N GPUs keeps of a parameter's bytes, stage by stage; and FSDP's step, with the gathers and
scatters beside the work.

>>> figure = shard_stages(gpus=8, title="Stage 3 has no floor", caption="Mixed precision with Adam.")
>>> figure.alt.split(". ")[3]
'Stage 3: weights 0.25, gradients 0.25, optimiser 1.5: 2 bytes a parameter.'
"""

from threeloops import checks
from threeloops.figures.boxes import Box, boxes
from threeloops.figures.figure import Figure
from threeloops.figures.overlap_rows import Busy, overlap_rows

SHARES = (("weights", 2, "memory", 3), ("gradients", 2, "control", 2), ("optimiser", 12, "compute", 1))
WIDTH, HEIGHT, GAP, NAME = 30, 46, 14, 92  # pixels: of a byte, of a row, between rows, of a row's name

# A step of three layers: who is on the network, who computes, in units of one gather. Forward computes take one,
# backward ones two.
NETWORK = (
    ("gather 1", 0, 1), ("gather 2", 1, 1), ("gather 3", 2, 1), ("gather 2", 4, 1),
    ("scatter 3", 6, 1), ("gather 1", 7, 1), ("scatter 2", 8, 1), ("scatter 1", 10, 1),
)  # fmt: skip
COMPUTE = (
    ("F 1", 1, 1), ("F 2", 2, 1), ("F 3", 3, 1), ("backward 3", 4, 2), ("backward 2", 6, 2), ("backward 1", 8, 2),
)  # fmt: skip
KINDS = {"gather": "memory", "scatter": "control", "F": "compute", "backward": "compute"}


def shard_stages(*, gpus: int, title: str, caption: str) -> Figure:
    """A row a stage: the sixteen bytes of a parameter as a frame, filled as far as one GPU keeps them.

    Source:   Rajbhandari et al., ZeRO, 2019, arXiv:1910.02054, figure 1 (2 + 2 + 12 bytes)
    """
    checks.count(at_least=2, gpus=gpus)
    plan, told = [], []
    for stage in range(4):
        y, x, total, words = stage * (HEIGHT + GAP), NAME + 12.0, 0.0, []
        plan.append(Box(x=0, y=y, width=NAME, height=HEIGHT, kind="off", text=f"stage {stage}"))
        for name, size, kind, sharded_from in SHARES:
            kept = size / gpus if stage >= sharded_from else size
            total += kept
            words.append(f"{name} {kept:g}")
            plan.append(Box(x=x, y=y, width=size * WIDTH, height=HEIGHT, kind="frame"))
            text = f"{name}\n{size} B" if kept == size else ""
            plan.append(Box(x=x, y=y, width=kept * WIDTH, height=HEIGHT, kind=kind, text=text))
            x += size * WIDTH + 4
        plan.append(Box(x=x + 8, y=y, width=74, height=HEIGHT, kind="off", text=f"{total:g} B"))
        told.append(f"Stage {stage}: {', '.join(words)}: {total:g} bytes a parameter")
    return boxes(plan, title=title, caption=caption, alt=". ".join(told) + ".")


def gathers_beside_work(*, title: str, caption: str) -> Figure:
    """FSDP's step over three layers: the network above, the computing below, time in gathers to the right."""
    spans = [
        Busy(row=row, text=text.replace(" ", breaks), start_s=at, end_s=at + lasts, kind=KINDS[text.split()[0]])
        for row, parts, breaks in (("network", NETWORK, "\n"), ("computing", COMPUTE, " "))
        for text, at, lasts in parts
    ]
    return overlap_rows(spans, title=title, caption=caption, unit="gathers")
