"""System view: what the map of the whole system shows for a state, as figure, sentences and table. No widget in here:
it is tested without a browser.

>>> shown = view(State(stage="training", gpus=64))
>>> print(shown.figure.title)
64 GPUs: a step takes 1.03 s, 62.1 times as fast as on one
"""

from dataclasses import dataclass
from functools import lru_cache

from threeloops import checks
from threeloops.facts import hardware
from threeloops.figures.boxes import Arrow, Box, boxes
from threeloops.figures.figure import Figure
from threeloops.inner_loop.scaling import JobStep, efficiency
from threeloops.training_loop.network import collectives
from threeloops.units import fmt_percent, fmt_seconds
from threeloops.widgets.system_stages import STAGES, Stage
from threeloops.widgets.view import html_table

GPUS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
COLUMNS = ("in a step", "time", "share")
NODE = 8  # GPUs that share fast links

# The job: an example of the book's own, and no measurement.
BATCH_S = 64.0  # one GPU computes forward and backward for a whole batch
OPTIMISER_S = 0.01  # on each GPU, however many there are
LOADER_S = 0.4  # what all GPUs share delivers a batch
GRADIENT_BYTES = 2.6e9  # 1.3 billion parameters in 16 bits
WAITS = {"loader": "the loader", "training": "training"}


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the controls stand: a stage of the system, and how many GPUs train."""

    stage: str
    gpus: int

    def __post_init__(self) -> None:
        checks.one_of(STAGES, stage=self.stage)
        checks.count(gpus=self.gpus)
        if self.gpus > NODE and self.gpus % NODE:
            raise ValueError(f"gpus={self.gpus} must be at most {NODE}, or a multiple of it: nodes are full")


@lru_cache
def rates() -> tuple[float, float]:
    """Bytes per second one way: inside a node, and between nodes per GPU."""
    return hardware.part("nvlink-4")["bytes_per_s_one_way"], hardware.part("infiniband-ndr")["bytes_per_s_one_way"]


def step(gpus: int) -> JobStep:
    """One training step of the job.

    Assumes:  a fixed batch, split evenly; an all-reduce of the gradients after the backward pass, inside the node and
              then between nodes, without latency and without overlap; a loader that works ahead, and whose rate does
              not depend on the number of GPUs
    """
    inside, between = rates()
    told = collectives.hierarchical_all_reduce(
        size_bytes=GRADIENT_BYTES,
        nodes=max(1, gpus // NODE),
        ranks_per_node=min(gpus, NODE),
        intra_alpha_s=0,
        intra_bytes_per_s_one_way=inside,
        inter_alpha_s=0,
        inter_bytes_per_s_one_way_per_rank=between,
        inter_algorithm="ring",
    )
    return JobStep(
        loader_s=LOADER_S,
        device_s={"forward and backward": BATCH_S / gpus, "all-reduce": told.total_s, "optimiser": OPTIMISER_S},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One part of a step."""

    name: str
    seconds: float
    share: float  # of the step; the loader's runs beside the others

    @property
    def cells(self) -> tuple[str, ...]:
        return self.name, fmt_seconds(self.seconds), fmt_percent(self.share)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything the map shows."""

    figure: Figure
    about: str  # the chosen stage: what can be done there, and where it is taught
    numbers: str  # what the GPUs make of the step
    rows: tuple[Row, ...]
    notes: dict[str, str]  # second line of every stage in the picture

    @property
    def summary(self) -> str:
        """What has changed: spoken by a screen reader."""
        return f"{self.about} {self.numbers}"

    @property
    def text(self) -> str:
        """All of it as plain text."""
        return "\n".join(
            [f"{self.figure.title}.", self.about, self.numbers, *(", ".join(row.cells) for row in self.rows)]
        )

    @property
    def table(self) -> str:
        """The parts of a step as an HTML table."""
        return html_table(COLUMNS, (row.cells for row in self.rows))


def pace(gpus: int) -> str:
    """The stage that the others wait for."""
    now = step(gpus)
    return "loader" if now.loader_s > now.busy_s else "training"


def notes(gpus: int) -> dict[str, str]:
    """The second line of every stage: its loop, or how long it takes for a batch."""
    now, said = step(gpus), {key: stage.loop for key, stage in STAGES.items()}
    said["loader"], said["training"] = f"{fmt_seconds(now.loader_s)} a batch", f"{fmt_seconds(now.busy_s)} a batch"
    said[pace(gpus)] = said[pace(gpus)].replace(" a batch", ", bottleneck")
    return said


def view(state: State) -> View:
    """What to show for a state."""
    now, alone = step(state.gpus), step(1)
    speedup, said = alone.total_s / now.total_s, notes(state.gpus)
    seconds = {"loader, beside the rest": now.loader_s, **now.device_s}
    title = f"{_gpus(state.gpus)}: a step takes {fmt_seconds(now.total_s)}"
    used = f"A step uses {state.gpus * now.total_s:,.0f} GPU-seconds."
    numbers = f"{title}, and {WAITS[pace(state.gpus)]} is the bottleneck. {used}"
    if state.gpus > 1:
        share = efficiency(speedup=speedup, num_processors=state.gpus)
        title += f", {speedup:.3g} times as fast as on one"
        numbers += f" It is {speedup:.3g} times as fast as on one GPU, an efficiency of {fmt_percent(share)}."
    return View(
        figure=_picture(state, said, title, numbers),
        about=STAGES[state.stage].sentence,
        numbers=numbers,
        rows=tuple(Row(name=name, seconds=value, share=value / now.total_s) for name, value in seconds.items()),
        notes=said,
    )


def _gpus(number: int) -> str:
    return f"{number:,} GPU{'' if number == 1 else 's'}"


WIDTH, HEIGHT, GAP, PER_ROW = 140, 58, 20, 4


def _picture(state: State, notes: dict[str, str], title: str, numbers: str) -> Figure:
    plan, arrows = [], []
    for place, (key, stage) in enumerate(STAGES.items()):
        row, column = divmod(place, PER_ROW)
        x, y = column * (WIDTH + GAP), row * (HEIGHT + 2 * GAP)
        plan.append(_box(stage, notes[key], x, y, chosen=key == state.stage))
        if column:
            arrows.append(Arrow(x=x - GAP, y=y + HEIGHT / 2, to_x=x - 5, to_y=y + HEIGHT / 2))
        elif row:
            over = (PER_ROW - 1) * (WIDTH + GAP) + WIDTH / 2
            arrows.append(Arrow(x=over, y=y - 2 * GAP, to_x=WIDTH / 2, to_y=y - 5))
    chosen = STAGES[state.stage]
    return boxes(
        plan,
        arrows=arrows,
        title=title,
        caption=f"From data to vehicle; a dot marks the chosen stage. {chosen.sentence}",
        alt=(
            f"Stages in a row: {', '.join(f'{stage.name} ({notes[key]})' for key, stage in STAGES.items())}. Chosen:"
            f" {chosen.name}. {numbers}"
        ),
    )


def _box(stage: Stage, note: str, x: float, y: float, *, chosen: bool) -> Box:
    return Box(
        x=x,
        y=y,
        width=WIDTH,
        height=HEIGHT,
        kind="compute" if chosen else "frame",
        text=f"{'● ' if chosen else ''}{stage.name}\n{note}",
    )
