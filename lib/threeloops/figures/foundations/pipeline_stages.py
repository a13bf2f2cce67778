"""Pipeline stages: which instruction is in which stage in every cycle.

>>> rows = [Step(panel="one after another", instruction=i, stage="fetch", cycle=3 * i) for i in range(2)]
>>> figure = pipeline_stages(rows, stages=["fetch"], title="Alone", caption="Two instructions.")
>>> print(figure.alt)
Instructions over cycles, 1 stage each (fetch). one after another: 2 instructions, the last one done in cycle 4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import WORDS, layer, nominal, ordinal
from threeloops.figures.figure import Figure
from threeloops.simulate.foundations import instruction_pipeline
from threeloops.units import counted

ROW, COLUMN = 24, 30  # pixels of one instruction, of one cycle
# light shades of the series colours, for dark letters
FILLS = ("#cfe3f1", "#f6d9c5", "#cfeadf", "#f0d6e2", "#e3e3e3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One instruction in one stage."""

    panel: str  # which machine
    instruction: int
    stage: str
    cycle: int

    def __post_init__(self) -> None:
        checks.count(at_least=0, instruction=self.instruction, cycle=self.cycle)


def machines(widths: Mapping[str, int], *, instructions: int, stages: Sequence[str]) -> list[Step]:
    """The same instructions, which do not need each other, on a machine that does one after another and on pipelines
    of these widths.

    >>> max(step.cycle for step in machines({"pipelined": 1}, instructions=4, stages=["fetch", "execute"]))
    7
    """
    deep = len(stages)
    steps = [
        Step(panel="one after another", instruction=i, stage=stage, cycle=deep * i + place)
        for i in range(instructions)
        for place, stage in enumerate(stages)
    ]
    for name, width in widths.items():
        steps += [
            Step(panel=name, instruction=place.instruction, stage=stages[place.stage], cycle=place.cycle)
            for place in instruction_pipeline.flow(instructions=instructions, stages=deep, width=width)
        ]
    return steps


def pipeline_stages(steps: Sequence[Step], *, stages: Sequence[str], title: str, caption: str) -> Figure:
    """One panel per machine, one row per instruction, one column per cycle; a stage shows its first letter.

    Raises:   ValueError for more stages than there are shades, or for a step in a stage that is not named
    """
    if not steps or not 0 < len(stages) <= len(FILLS):
        raise ValueError(
            f"{len(steps)} steps in {len(stages)} stages; give at least one step and 1 to {len(FILLS)} stages"
        )
    for step in steps:
        checks.one_of(stages, stage=step.stage)
    panels = list(dict.fromkeys(step.panel for step in steps))
    last = max(step.cycle for step in steps)
    rows = [
        {
            "panel": s.panel,
            "row": s.instruction + 1,
            "cycle": s.cycle + 1,
            "stage": s.stage,
            "letter": s.stage[0].upper(),
            "words": _words(s),
        }
        for s in steps
    ]
    shades = {"domain": list(stages), "range": list(FILLS[: len(stages)])}
    x = ordinal(
        "cycle", scale={"domain": list(range(1, last + 2))}, axis={"title": "cycle", "labelAngle": 0, "grid": False}
    )
    y = ordinal("row", axis={"title": "instruction"})
    return Figure(
        title=title,
        caption=caption,
        alt=_alt(steps, panels, stages),
        body={
            "data": {"values": rows},
            "facet": {
                "row": nominal("panel", sort=panels, title=None, header={"orient": "top", "labelFontSize": look.TEXT})
            },
            "resolve": {"scale": {"y": "independent"}},
            "spec": {
                "width": min(look.PLOT_WIDTH, COLUMN * (last + 1)),
                "height": {"step": ROW},
                "layer": [
                    layer(
                        {"type": "rect", "stroke": look.GREY, "strokeWidth": 0.7},
                        x=x,
                        y=y,
                        color=nominal("stage", scale=shades, sort=list(stages), legend={"title": None}),
                        **WORDS,
                    ),
                    layer({"type": "text", "aria": False}, x=x, y=y, text="letter"),
                ],
            },
        },
    )


def _words(step: Step) -> str:
    return f"{step.panel}: instruction {step.instruction + 1}, {step.stage}, cycle {step.cycle + 1}"


def _alt(steps: Sequence[Step], panels: Sequence[str], stages: Sequence[str]) -> str:
    said = []
    for panel in panels:
        inside = [step for step in steps if step.panel == panel]
        number = len({step.instruction for step in inside})
        said.append(
            f"{panel}: {counted(number, 'instruction')}, the last one done in cycle"
            f" {max(step.cycle for step in inside) + 1}."
        )
    return f"Instructions over cycles, {counted(len(stages), 'stage')} each ({', '.join(stages)}). {' '.join(said)}"
