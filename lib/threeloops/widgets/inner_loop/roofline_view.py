"""Roofline view: what the explorer shows for a state, as figure, sentences and table. No widget in here: it is
computed and tested without a browser.

>>> shown = view(State(accelerator="h100-sxm5", precision="bf16", phase="decode", batch=1, sequence=2048))
>>> print(shown.figure.title)
All 11 operations of the layer are memory-bound
>>> shown.rows[1].sentence
'qkv projection: memory-bound, 0.9996 FLOP/B, at most 3.35 TFLOP/s, at least 15.0 µs'
"""

from collections import Counter
from dataclasses import dataclass

from threeloops import checks
from threeloops.dtypes import bytes_per_element
from threeloops.facts import hardware
from threeloops.facts.kernel_times import MATMUL, SIZES, kernel_times, timed_parts
from threeloops.figures.figure import Figure
from threeloops.figures.inner_loop import roofline as charts
from threeloops.inner_loop.roofline_levels import on_chip_bytes_per_s
from threeloops.models import parameters, transformer
from threeloops.models.architecture import Model
from threeloops.models.forward_step import MATRIX, VECTOR, Op
from threeloops.operations import roofline as formulas
from threeloops.operations.expected_times import kernel_work
from threeloops.product_loop import kv_cache
from threeloops.units import fmt, fmt_bytes, fmt_seconds
from threeloops.widgets.inner_loop.roofline_layer import PRECISIONS, model, operations, part, precisions
from threeloops.widgets.view import html_table

ACCELERATORS = ("v100-sxm2-32gb", "a100-sxm4-80gb", "h100-sxm5", "h200-sxm", "b200-hgx", "l4", "rtx-4090")
PHASES = ("prefill", "decode")
ROOFS = ("of this precision", "of every precision", "of every memory", "with measured matmuls")
TIMES = tuple(2.0 ** (power / 4) for power in range(-8, 9))  # what a roof may be turned to, of the chip's own
SHARED_BYTES_PER_CYCLE = 128  # of one SM: 32 banks of 4 bytes
COLUMNS = ("operation", "bound", "intensity", "rate, at most", "time, at least")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the controls stand. The step is one of a language model, on one accelerator."""

    accelerator: str
    precision: str
    phase: str
    batch: int
    sequence: int  # prefill: tokens of each prompt; decode: tokens of context of each request
    model: str = "llama-3-8b"
    launch_overhead_s: float = 0.0  # 0: launches are hidden, as in a captured graph
    roofs: str = "of this precision"
    compute_times: float = 1.0  # as many FLOP/s as the chip has
    memory_times: float = 1.0  # as many bytes/s

    def __post_init__(self) -> None:
        checks.one_of(ROOFS, roofs=self.roofs)
        checks.one_of(ACCELERATORS, accelerator=self.accelerator)
        checks.one_of(PRECISIONS, precision=self.precision)
        checks.one_of(PHASES, phase=self.phase)
        checks.count(batch=self.batch, sequence=self.sequence)
        checks.non_negative(launch_overhead_s=self.launch_overhead_s)
        checks.positive(compute_times=self.compute_times, memory_times=self.memory_times)
        known = precisions(self.accelerator)
        if self.precision not in known:
            raise ValueError(
                f"precision={self.precision!r} has no peak on {self.accelerator}; it has {', '.join(known)}"
            )
        longest = model(self.model).max_context
        if self.sequence > longest:
            raise ValueError(f"sequence={self.sequence} must be at most {longest}, the longest context of {self.model}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One operation of the layer, in words."""

    name: str
    bound: str
    arithmetic_intensity: float
    flops_per_s: float
    lower_bound_s: float

    @property
    def cells(self) -> tuple[str, ...]:
        intensity, rate = fmt(self.arithmetic_intensity, "FLOP/B"), fmt(self.flops_per_s, "FLOP/s")
        return self.name, self.bound, intensity, rate, fmt_seconds(self.lower_bound_s)

    @property
    def sentence(self) -> str:
        name, bound, intensity, rate, time = self.cells
        return f"{name}: {bound}-bound, {intensity}, at most {rate}, at least {time}"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything the explorer shows."""

    figure: Figure
    summary: str  # what has changed, in two sentences: spoken by a screen reader
    rows: tuple[Row, ...]

    @property
    def text(self) -> str:
        """All of it as plain text."""
        return "\n".join([f"{self.figure.title}.", self.summary, *(row.sentence for row in self.rows)])

    @property
    def table(self) -> str:
        """The operations as an HTML table."""
        return html_table(COLUMNS, (row.cells for row in self.rows))


def view(state: State) -> View:
    """What to show for a state: the operations of the model's first layer, each at the rate that its roof allows.

    Assumes:  causal attention counted exactly and fused; every operation of the layer launched by itself, one after
              another; one device
    """
    chip, network, precision = part(state.accelerator), model(state.model), PRECISIONS[state.precision]
    stored, weights = bytes_per_element(precision.stored), bytes_per_element(precision.weights)
    ops = operations(state.model, state.precision, state.phase, state.batch, state.sequence)
    roofs = _roofs(chip, precision.peak, state.compute_times, every=state.roofs == ROOFS[1])
    peaks, bandwidth, rows = _peaks(roofs), chip["memory_bytes_per_s"] * state.memory_times, rows_of(state)
    setting = (
        f"{state.phase}, batch {state.batch:,}, {state.sequence:,} tokens"
        f" {'each' if state.phase == 'prefill' else 'of context'}, {precision.words}"
    )
    points = charts.op_points(
        ops,
        matrix_flops_per_s=peaks[MATRIX],
        vector_flops_per_s=peaks[VECTOR],
        memory_bytes_per_s=bandwidth,
        launch_overhead_s=state.launch_overhead_s,
    )
    figure = charts.roofline(
        points,
        roofs=roofs,
        memory_bytes_per_s=bandwidth,
        slopes=memories(state.accelerator) if state.roofs == ROOFS[2] else None,
        measured=measured_matmuls(state.accelerator, precision.peak) if state.roofs == ROOFS[3] else (),
        title=_finding(rows),
        caption=f"One layer of {network.name}: {setting}, on an {chip.name}{_turned(state)}.",
    )
    layer = transformer.model_time(
        ops,
        matrix_flops_per_s=peaks[MATRIX],
        vector_flops_per_s=peaks[VECTOR],
        memory_bytes_per_s=bandwidth,
        launch_overhead_s=state.launch_overhead_s,
    )
    ridge = formulas.ridge_point(peak_flops_per_s=peaks[MATRIX], memory_bytes_per_s=bandwidth)
    summary = (
        f"{setting[:1].upper()}{setting[1:]}, on {chip.name}{_turned(state)}: ridge point {ridge:,.0f} FLOP/B; "
        f"the layer takes at least {fmt_seconds(layer.lower_bound_s)} and is {layer.bound}-bound as a whole. "
        f"{_room(state, network, chip, stored, weights)}{_levels(state)}{_timed(state)}"
    )
    return View(figure=figure, summary=summary, rows=rows)


def rows_of(state: State) -> tuple[Row, ...]:
    """Every operation of the layer that computes anything, at the rate that its roof allows."""
    chip = part(state.accelerator)
    peaks = _peaks(_roofs(chip, PRECISIONS[state.precision].peak, state.compute_times, every=False))
    bandwidth = chip["memory_bytes_per_s"] * state.memory_times
    ops = operations(state.model, state.precision, state.phase, state.batch, state.sequence)
    return tuple(_row(op, peaks[op.unit], bandwidth, state.launch_overhead_s) for op in ops if op.work.flops)


def _peaks(roofs: dict[str, float]) -> dict[str, float]:
    """FLOP/s of the tensor cores and of the CUDA cores, whose roofs come first."""
    return dict(zip((MATRIX, VECTOR), roofs.values(), strict=False))


def _turned(state: State) -> str:
    """How far the roofs are from the chip's own."""
    turned = {"the FLOP/s": state.compute_times, "the bandwidth": state.memory_times}
    said = [f"{times:.3g} times {name}" for name, times in turned.items() if times != 1]
    return f" with {' and '.join(said)}" if said else ""


def _roofs(chip: hardware.Part, peak: str, times: float, *, every: bool) -> dict[str, float]:
    """The roofs of the tensor cores in one precision and of the CUDA cores, or of every precision; two at the same
    height are one with both names.
    """
    vector, formats = chip.peak_flops_per_s("fp32"), _formats(chip, but=peak) if every else {}
    same = [name for name, rate in formats.items() if rate == vector]
    own = {f"{peak} tensor cores": chip.peak_flops_per_s(peak), ", ".join(["fp32 CUDA cores", *same]): vector}
    more = {name: rate for name, rate in formats.items() if name not in same}
    return {name: rate * times for name, rate in {**own, **more}.items()}


def _formats(chip: hardware.Part, *, but: str) -> dict[str, float]:
    """One roof per further rate of the tensor cores, named after all formats that run at it; the rate of the format
    `but` has its roof already.
    """
    named: dict[float, list[str]] = {}
    for dtype in ("tf32", "bf16", "fp16", "fp8", "int8", "fp4"):
        if dtype in chip.peaks and chip.peak_flops_per_s(dtype) != chip.peak_flops_per_s(but):
            named.setdefault(chip.peak_flops_per_s(dtype), []).append(dtype)
    return {", ".join(dtypes): peak for peak, dtypes in named.items()}


def memories(accelerator: str) -> dict[str, float]:
    """Bytes/s of the memories on the chip, as far as the catalogue knows them: L2, and shared memory of all SMs
    together.

    >>> [f"{name} {rate / 1e12:.1f} TB/s" for name, rate in memories("a100-sxm4-80gb").items()]
    ['L2 7.2 TB/s', 'shared memory 19.5 TB/s']
    """
    chip, found = part(accelerator), {}
    if {"l2_bytes_per_cycle", "boost_clock_hz"} <= set(chip.facts):
        found["L2"] = on_chip_bytes_per_s(
            units=1, bytes_per_cycle=chip["l2_bytes_per_cycle"], clock_hz=chip["boost_clock_hz"]
        )
    if {"sms", "boost_clock_hz"} <= set(chip.facts):
        found["shared memory"] = on_chip_bytes_per_s(
            units=int(chip["sms"]), bytes_per_cycle=SHARED_BYTES_PER_CYCLE, clock_hz=chip["boost_clock_hz"]
        )
    return found


def measured_matmuls(accelerator: str, format: str) -> tuple[tuple[float, float], ...]:
    """Matmuls that others timed on this chip in this format, as (FLOP/B, FLOP/s): those that no curve has seen. None
    where there are none.

    >>> len(measured_matmuls("h100-sxm5", "bf16")) > 50, measured_matmuls("l4", "bf16")
    (True, ())
    """
    if accelerator not in timed_parts():
        return ()
    tables = [one for one in kernel_times(accelerator).tables if (one.family, one.format) == (MATMUL, format)]
    calls = [
        (dict(zip(SIZES[MATMUL], sizes, strict=True)), took_s) for one in tables for sizes, took_s in one.kept_back
    ]
    works = [(kernel_work(MATMUL, shape, format), took_s) for shape, took_s in calls]
    return tuple((work.arithmetic_intensity, work.flops / took_s) for work, took_s in works)


def _timed(state: State) -> str:
    """The measured matmuls in words, where they are drawn."""
    if state.roofs != ROOFS[3]:
        return ""
    format = PRECISIONS[state.precision].peak
    found = len(measured_matmuls(state.accelerator, format))
    if not found:
        return f" No times of matmuls in {format} on this chip are in the catalogue; an H100 in bf16 has some."
    return f" Small dots: {found} matmuls in {format}, of other shapes, as others timed them on this chip."


def _levels(state: State) -> str:
    """The further slopes in words, where they are drawn."""
    if state.roofs != ROOFS[2]:
        return ""
    found = [f"{name} {fmt(rate, 'B/s')}" for name, rate in memories(state.accelerator).items()]
    return f" On the chip: {', '.join(found) or 'no rate in the catalogue'}."


def _row(op: Op, peak: float, bandwidth: float, launch_overhead_s: float) -> Row:
    time = formulas.time(
        op.work, peak_flops_per_s=peak, memory_bytes_per_s=bandwidth, launch_overhead_s=launch_overhead_s
    )
    return Row(
        name=op.name.replace("_", " "),
        bound=time.bound,
        arithmetic_intensity=op.work.arithmetic_intensity,
        flops_per_s=op.work.flops / time.lower_bound_s,
        lower_bound_s=time.lower_bound_s,
    )


def _finding(rows: tuple[Row, ...]) -> str:
    """The figure's title: how many operations each bound holds."""
    counts = Counter(row.bound for row in rows)
    if len(counts) == 1:
        return f"All {len(rows)} operations of the layer are {rows[0].bound}-bound"
    return "Of the layer's operations, " + " and ".join(
        f"{counts[bound]} are {bound}-bound" for bound in formulas.BOUNDS if bound in counts
    )


def _room(state: State, network: Model, chip: hardware.Part, stored: float, weights: float) -> str:
    """Whether weights and cache fit, because a roofline does not know."""
    held = parameters.model_parameters(network).total * weights
    cache = kv_cache.request_bytes(network, tokens=state.sequence, bytes_per_element=stored) * state.batch
    verdict = "fit in" if held + cache <= chip.capacity_bytes() else "do not fit in"
    return (
        f"Weights of {fmt_bytes(held, base=2)} and {fmt_bytes(cache, base=2)} of keys and values {verdict} its"
        f" {fmt_bytes(chip.capacity_bytes(), base=2)}."
    )
