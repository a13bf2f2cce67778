"""Timeline view: what the explorer shows for a state, as figure, sentences and table. No widget in here: it is
computed and tested without a browser.

>>> shown = view(State(workers=8, reads="never", kernels="compiled", gradients="during backward"))
>>> print(shown.figure.title)
The GPU computes for 86.8 % of the time
"""

from dataclasses import dataclass

from threeloops import checks
from threeloops.figures.figure import Figure
from threeloops.figures.inner_loop import timeline
from threeloops.inner_loop import trace_diagnosis, trace_gauges
from threeloops.simulate.inner_loop.training_timeline import Job, Played, play
from threeloops.units import fmt_percent, fmt_seconds
from threeloops.widgets.view import html_table

WORKERS = (1, 2, 3, 4, 6, 8)
READS = {"never": 0, "once a step": 1, "in every layer": 24}  # how often the CPU reads a value of the device
KERNELS = ("one by one", "compiled", "compiled, captured")
GRADIENTS = ("after backward", "during backward")
STEPS, SETTLED, LAST = 7, 3, 5  # steps played; shown is what lies between the ends of the last two
SEED = 8
COLUMNS = ("spent on", "share of the time", "per step")
CAUSE_WORDS = {
    "communication": "waiting for the network",
    "copies": "waiting for a copy",
    "loader": "waiting for a batch",
    "sync": "after the CPU has read a value",
    "launches": "not asked for the next kernel yet",
    "other": "unexplained",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the controls stand."""

    workers: int
    reads: str
    kernels: str
    gradients: str

    def __post_init__(self) -> None:
        checks.count(workers=self.workers)
        checks.one_of(READS, reads=self.reads)
        checks.one_of(KERNELS, kernels=self.kernels)
        checks.one_of(GRADIENTS, gradients=self.gradients)

    @property
    def words(self) -> str:
        how = "1 worker" if self.workers == 1 else f"{self.workers} workers"
        read = "no value read" if self.reads == "never" else f"a value read {self.reads}"
        return f"{how}, {read}, kernels {self.kernels}, gradients sent {self.gradients}"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything the explorer shows."""

    figure: Figure
    summary: str  # what has changed: spoken by a screen reader
    step_s: float
    read: trace_gauges.Gauges

    @property
    def text(self) -> str:
        """All of it as plain text."""
        return "\n".join([f"{self.figure.title}.", self.summary, self.figure.alt])

    @property
    def rows(self) -> tuple[tuple[str, str, str], ...]:
        """Where a step's time goes: computing, then every cause of idle time that took any."""
        shares = {"computing": self.read.busy} | {
            CAUSE_WORDS[cause]: share for cause, share in self.read.causes.items() if share >= 0.001
        }
        return tuple((name, fmt_percent(share), fmt_seconds(share * self.step_s)) for name, share in shares.items())

    @property
    def table(self) -> str:
        """The same as an HTML table."""
        return html_table(COLUMNS, self.rows)


def job(state: State) -> Job:
    """The training job that the controls turn: twelve small layers, so that asking for a kernel takes about as long
    as running one.
    """
    return Job(
        layers=12,
        products=4,
        product_s=12e-6,
        vectors=8,
        vector_s=9e-6,
        launch_s=13e-6,
        ahead=250,
        batch_s=16e-3,
        workers=state.workers,
        copy_s=0.1e-3,
        syncs=READS[state.reads],
        sync_return_s=50e-6,
        network_s=1.2e-3,
        overlap=state.gradients == "during backward",
        graph=state.kernels == "compiled, captured",
        fused=state.kernels != "one by one",
    )


def played(state: State) -> Played:
    """The job, played for a few steps with the same small noise at every state."""
    return play(job(state), steps=STEPS, seed=SEED)


def view(state: State) -> View:
    """What to show for a state: two steps from the middle of the run, and where their time went."""
    run = played(state)
    window = run.window(SETTLED, LAST)
    step_s = (run.finished_s[LAST] - run.finished_s[SETTLED]) / (LAST - SETTLED)
    read = trace_gauges.gauges(window)
    found = trace_diagnosis.findings(read)
    suspect = (
        f"First suspect: {found[0].illness}."
        if found
        else "No suspect: the device computes for four fifths of the time or more."
    )
    figure = timeline.timeline(
        window,
        title=f"The GPU computes for {fmt_percent(read.busy)} of the time",
        caption=f"Two steps: {state.words}.",
    )
    return View(
        figure=figure,
        summary=f"{state.words[:1].upper()}{state.words[1:]}: {fmt_seconds(step_s)} per step. {suspect}",
        step_s=step_s,
        read=read,
    )
