"""Training memory view: what the explorer shows for a state, as figure, sentences and table. No widget in here.

>>> shown = view(State(micro_batch=1, recompute="every layer", zero_stage=1, host="nothing", cross_entropy="plain"))
>>> print(shown.summary)
Most: 70.0 GiB at backward, loss; it fits with 9.69 GiB to spare. Between steps 56.1 GiB. The layers' forward pass runs twice. Nothing in host memory.
"""  # noqa: E501

from dataclasses import dataclass

from threeloops import checks
from threeloops.facts import hardware
from threeloops.figures.training_loop.memory_timeline import memory_timeline
from threeloops.models.catalogue import model
from threeloops.models.parameters import model_parameters
from threeloops.training_loop.memory.setup import Training
from threeloops.training_loop.memory.step_memory import HOSTS, PARTS, StepMemory, host_traffic_bytes, step_memory
from threeloops.units import fmt_bytes
from threeloops.widgets.view import View

MODEL, PART, GPUS, SEQUENCE, RECIPE = "llama-3-8b", "h100-sxm5", 8, 8192, "megatron"
MICRO_BATCHES = (1, 2, 3, 4, 6, 8)
RECOMPUTE = {
    "nothing": 0,
    "every layer": 1,
    "segments of 2 layers": 2,
    "segments of 4 layers": 4,
    "segments of 8 layers": 8,
}
ZERO_STAGES = {"0: nothing sharded": 0, "1: optimiser state": 1, "2: and gradients": 2, "3: and weights": 3}
CROSS_ENTROPY = {"plain": "plain", "in slices": "sliced"}
IN_HOST_MEMORY = {"nothing": "nothing", "the optimiser state": "optimiser"}
LOSS = {"plain": "torch's own cross-entropy", "sliced": "a cross-entropy in slices"}
COLUMNS = ("part", "at the highest moment", "between steps")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the controls stand."""

    micro_batch: int
    recompute: str  # a key of RECOMPUTE
    zero_stage: int
    host: str  # one of step_memory.HOSTS
    cross_entropy: str  # one of CROSS_ENTROPY's values

    def __post_init__(self) -> None:
        checks.one_of(RECOMPUTE, recompute=self.recompute)
        checks.one_of(HOSTS, host=self.host)
        checks.one_of(CROSS_ENTROPY.values(), cross_entropy=self.cross_entropy)
        if self.micro_batch not in MICRO_BATCHES:
            raise ValueError(f"micro_batch={self.micro_batch!r} must be one of {', '.join(map(str, MICRO_BATCHES))}")
        if self.zero_stage not in ZERO_STAGES.values():
            raise ValueError(
                f"zero_stage={self.zero_stage!r} must be one of {', '.join(map(str, ZERO_STAGES.values()))}"
            )


def training(state: State) -> Training:
    """The set-up that a state stands for."""
    return Training(
        model=model(MODEL),
        recipe=RECIPE,
        zero_stage=state.zero_stage,
        dp=GPUS,
        tp=1,
        pp=1,
        sequence_parallel=False,
        schedule="1f1b",
        micro_batches=1,
        bytes_per_element=2,
        kernels="fused",
        dropout=False,
        recompute="full" if RECOMPUTE[state.recompute] else "none",
        gathered_layers=2 if state.zero_stage == 3 else None,
        cross_entropy=state.cross_entropy,
    )


def film(state: State) -> StepMemory:
    """The step of a state, moment by moment."""
    return step_memory(
        training(state),
        micro_batch=state.micro_batch,
        sequence=SEQUENCE,
        every=max(1, RECOMPUTE[state.recompute]),
        host=state.host,
    )


def view(state: State) -> View:
    """What to show for a state."""
    step, capacity = film(state), hardware.part(PART).capacity_bytes()
    peak, rest = step.peak, step.moments[-1]
    figure = memory_timeline(
        step.by_part,
        moments=[moment.name for moment in step.moments],
        base=2,
        title=f"{_in_words(state)}: {_room(peak.total_bytes, capacity)}",
        caption=(
            f"Llama 3 8B on {GPUS} H100s, {state.micro_batch} x {SEQUENCE:,} tokens each, recipe {RECIPE}, fused"
            f" kernels, {LOSS[state.cross_entropy]}. Not counted: workspaces, communication buffers, fragments."
        ),
        limit=("what the driver reports", capacity),
    )
    runs = "The layers' forward pass runs twice." if RECOMPUTE[state.recompute] else "Nothing runs twice."
    summary = (
        f"Most: {fmt_bytes(peak.total_bytes, base=2)} at {peak.name}; {_fit(peak.total_bytes, capacity)}. "
        f"Between steps {fmt_bytes(rest.total_bytes, base=2)}. {runs} {_host(state, step)}"
    )
    cells = zip(PARTS, peak.bytes_by_part, rest.bytes_by_part, strict=True)
    rows = tuple((part, fmt_bytes(at_peak, base=2), fmt_bytes(at_rest, base=2)) for part, at_peak, at_rest in cells)
    return View(columns=COLUMNS, figure=figure, summary=summary, rows=rows)


def _in_words(state: State) -> str:
    again = "nothing recomputed" if state.recompute == "nothing" else f"recomputed: {state.recompute}"
    return f"Micro-batch {state.micro_batch}, ZeRO stage {state.zero_stage}, {again}"


def _room(peak_bytes: float, capacity_bytes: float) -> str:
    spare = capacity_bytes - peak_bytes
    return f"{fmt_bytes(abs(spare), base=2)} {'to spare' if spare >= 0 else 'too many'}"


def _fit(peak_bytes: float, capacity_bytes: float) -> str:
    room = _room(peak_bytes, capacity_bytes)
    return f"it fits with {room}" if peak_bytes <= capacity_bytes else room


def _host(state: State, step: StepMemory) -> str:
    if state.host == "nothing":
        return "Nothing in host memory."
    mine = model_parameters(model(MODEL)).total / (GPUS if state.zero_stage else 1)
    sent = host_traffic_bytes(training(state), sharded_parameters=mine)
    return (
        f"Host memory: {fmt_bytes(step.host_bytes, base=2)} per GPU; {fmt_bytes(sent, base=10)} cross the bus in every"
        " step."
    )
