"""Shard stages: what one of N GPUs keeps of a parameter's bytes, stage by stage; and FSDP's step, with the gathers and
scatters beside the work.

>>> figure = shard_stages(gpus=8, title="Stage 3 has no floor", caption="Mixed precision with Adam.")
>>> figure.alt.split(". ")[3]
'Stage 3: weights 0.25, gradients 0.25, optimiser 1.5: 2 bytes a parameter.'
"""

from collections.abc import Iterable

from threeloops import checks
from threeloops.figures.boxes import Box, boxes
from threeloops.figures.figure import Figure
from threeloops.figures.overlap_rows import Busy, overlap_rows
from threeloops.simulate.training_loop.sharded_step import Work, play

SHARES = (("weights", 2, "compute", 3), ("gradients", 2, "memory", 2), ("optimiser", 12, "control", 1))
WIDTH, HEIGHT, GAP, NAME = 30, 46, 14, 92  # pixels: of a byte, of a row, between rows, of a row's name

KINDS = {"gather": "memory", "scatter": "control", "forward": "compute", "backward": "compute"}


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
    shares = (NAME + 12, x)
    return boxes(plan, title=title, caption=caption, alt=". ".join(told) + ".", to_scale=shares)


def gathers_beside_work(*, title: str, caption: str) -> Figure:
    """FSDP's step over three layers as the simulator plays it: the network above, the computing below, time in gathers
    to the right.
    """
    played = play(layers=3, forward_s=1, backward_s=2, gather_s=1, scatter_s=1, ahead=1, keep=False)
    return overlap_rows(busy(played.work), title=title, caption=caption, unit="gathers", rows=("network", "computing"))


def busy(work: Iterable[Work], until_s: float = float("inf"), *, letters: bool = False) -> list[Busy]:
    """What has begun by a moment, in the rows of the network and of the device; with letters in place of words."""
    return [
        Busy(
            row="network" if one.on_network else "computing",
            text=f"{one.what[0].upper()} {one.layer}"
            if letters or one.what == "forward"
            else f"{one.what}\n{one.layer}",
            start_s=one.start_s,
            end_s=min(one.end_s, until_s),
            kind=KINDS[one.what],
        )
        for one in sorted(work, key=lambda one: one.start_s)
        if one.start_s < until_s
    ]
