"""Weights wait: the two halves of a backward pass through a pipeline's stages. The input gradients are a chain; the
weight gradients hang beside it and end at the optimiser.

>>> weights_wait(stages=2, title="W can wait", caption="Two stages.").alt
'The loss gives a gradient to stage 2. D of stage 2 gives its gradient to stage 1; D of stage 1 goes no further. W of stages 1 and 2 hang beside that chain, and all of them go to the optimiser, which works when the last is there.'
"""  # noqa: E501

from threeloops import checks
from threeloops.figures.boxes import Arrow, Box, boxes
from threeloops.figures.figure import Figure

WIDTH, HEIGHT, ACROSS, DOWN = 104, 54, 44, 40  # pixels: of a box, and between two
LOSS = 62  # width of the loss's box


def weights_wait(*, stages: int, title: str, caption: str) -> Figure:
    """The chain of input gradients from the loss to the first stage, the weight gradients under it, and who waits for
    what.
    """
    checks.count(at_least=2, stages=stages)
    plan, arrows = [], []
    under, bottom = HEIGHT + DOWN, 2 * (HEIGHT + DOWN)
    for place in range(stages):
        x, name = place * (WIDTH + ACROSS), f"stage {place + 1}"
        plan.append(Box(x=x, y=0, width=WIDTH, height=HEIGHT, kind="compute", text=f"D, {name}\nat once"))
        plan.append(Box(x=x, y=under, width=WIDTH, height=HEIGHT, kind="frame", text=f"W, {name}\nin any gap"))
        came = x + WIDTH + ACROSS  # where the gradient of this stage's output comes from
        arrows.append(Arrow(x=came - 5, y=HEIGHT / 2, to_x=x + WIDTH + 6, to_y=HEIGHT / 2))
        arrows.append(Arrow(x=came - 5, y=HEIGHT / 2 + 6, to_x=x + WIDTH - 8, to_y=under - 6))
        middle = x + WIDTH / 2
        arrows.append(Arrow(x=middle, y=under + HEIGHT + 4, to_x=middle, to_y=bottom - 6))
    right = stages * (WIDTH + ACROSS)
    plan.append(Box(x=right, y=0, width=LOSS, height=HEIGHT, kind="memory", text="loss"))
    plan.append(
        Box(
            x=0,
            y=bottom,
            width=right - ACROSS,
            height=HEIGHT,
            kind="memory",
            text="optimiser: when the last W is there",
        )
    )
    return boxes(plan, arrows=arrows, title=title, caption=caption, alt=_words(stages))


def _words(stages: int) -> str:
    chain = "; ".join(f"D of stage {stage} gives its gradient to stage {stage - 1}" for stage in range(stages, 1, -1))
    named = ", ".join(map(str, range(1, stages))) + f" and {stages}"
    return (
        f"The loss gives a gradient to stage {stages}. {chain}; D of stage 1 goes no further. W of stages {named}"
        " hang beside that chain, and all of them go to the optimiser, which works when the last is there."
    )
