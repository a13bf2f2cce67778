"""`threeloops roofline`: is this work limited by arithmetic, by memory traffic, or by launching it?"""

from dataclasses import dataclass

from threeloops import dtypes
from threeloops.commands.working import Line, Working, plain, said_of_positions
from threeloops.facts.hardware import Part
from threeloops.models import transformer
from threeloops.models.architecture import Attention, LatentAttention, Model, MoeMlp
from threeloops.models.forward_step import MATRIX, ForwardStep, Op
from threeloops.models.parameters import model_parameters
from threeloops.operations import kernels, roofline
from threeloops.operations.roofline import Time, Work
from threeloops.units import fmt, fmt_bytes, fmt_seconds, fmt_si

SOURCES = ("Williams, Waterman, Patterson, CACM 52(4), 2009, doi:10.1145/1498765.1498785",)
ASSUMES = (
    "every operand crosses device memory once; caches hold nothing from one kernel to the next",
    "dense peak and full bandwidth: divide by measured ceilings for what a kernel reaches",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """An accelerator, and which of its rates are asked for."""

    part: Part
    engine: str | None  # of a system on a chip
    power_mode: str | None
    launch_overhead_s: float

    def peak_flops_per_s(self, dtype: str) -> float:
        return self.part.peak_flops_per_s(dtypes.peak_format(dtype), engine=self.engine, power_mode=self.power_mode)

    @property
    def vector_flops_per_s(self) -> float | None:
        """Of ordinary arithmetic, where the part lists it."""
        rates = self.part.peaks or self.part.engines[str(self.engine)][str(self.power_mode)].peaks
        return rates["fp32"].value if "fp32" in rates else None


def _ridge_lines(machine: Machine, dtype: str) -> tuple[float, float, list[Line]]:
    peak, bandwidth = machine.peak_flops_per_s(dtype), machine.part["memory_bytes_per_s"]
    ridge = roofline.ridge_point(peak_flops_per_s=peak, memory_bytes_per_s=bandwidth)
    return (
        peak,
        bandwidth,
        [
            Line(
                name="ridge point",
                formula="peak / bandwidth",
                numbers=f"{plain(peak)} / {plain(bandwidth)}",
                value=ridge,
                unit="FLOP/B",
            )
        ],
    )


def _work_lines(work: Work, flops: tuple[str, str], moved: tuple[str, str]) -> list[Line]:
    return [
        Line(name="FLOPs", formula=flops[0], numbers=flops[1], value=work.flops, unit="FLOP"),
        Line(name="bytes moved", formula=moved[0], numbers=moved[1], value=work.moved_bytes, unit="B"),
        Line(
            name="arithmetic intensity",
            formula="FLOPs / bytes moved",
            numbers=f"{plain(work.flops)} / {plain(work.moved_bytes)}",
            value=work.arithmetic_intensity,
            unit="FLOP/B",
        ),
    ]


def _time_lines(work: Work, time: Time, *, peak: float, bandwidth: float, launch_s: float) -> list[Line]:
    parts = [plain(time.compute_s), plain(time.memory_s), plain(time.overhead_s)]
    return [
        Line(
            name="computing",
            formula="FLOPs / peak",
            numbers=f"{plain(work.flops)} / {plain(peak)}",
            value=time.compute_s,
            unit="s",
        ),
        Line(
            name="moving",
            formula="bytes moved / bandwidth",
            numbers=f"{plain(work.moved_bytes)} / {plain(bandwidth)}",
            value=time.memory_s,
            unit="s",
        ),
        Line(
            name="launching",
            formula="launches × launch overhead",
            numbers=f"1 × {plain(launch_s)}",
            value=time.overhead_s,
            unit="s",
        ),
        Line(
            name="at least",
            formula="the longest: all of it overlaps",
            numbers=f"max({', '.join(parts)})",
            value=time.lower_bound_s,
            unit="s",
        ),
        Line(
            name="at most",
            formula="the sum: nothing overlaps",
            numbers=" + ".join(parts),
            value=time.upper_bound_s,
            unit="s",
        ),
    ]


def gemm_working(*, m: int, n: int, k: int, dtype: str, machine: Machine) -> Working:
    """One matrix product on one accelerator."""
    element = dtypes.bytes_per_element(dtype)
    work = kernels.gemm(m=m, n=n, k=k, bytes_per_element=element)
    part, launch_overhead_s = machine.part, machine.launch_overhead_s
    peak, bandwidth, lines = _ridge_lines(machine, dtype)
    time = roofline.time(
        work, peak_flops_per_s=peak, memory_bytes_per_s=bandwidth, launches=1, launch_overhead_s=launch_overhead_s
    )
    moved = ("(m × k + k × n + m × n) × bytes", f"({m} × {k} + {k} × {n} + {m} × {n}) × {element:g}")
    lines += _work_lines(work, ("2 × m × n × k", f"2 × {m} × {n} × {k}"), moved)
    lines += _time_lines(work, time, peak=peak, bandwidth=bandwidth, launch_s=launch_overhead_s)
    return Working(
        title=f"GEMM [{m} × {k}] · [{k} × {n}] in {dtype} on {part.name}",
        inputs={
            "peak": fmt(peak, "FLOP/s") + ", dense",
            "bandwidth": fmt(bandwidth, "B/s"),
            "launch overhead": fmt_seconds(launch_overhead_s),
        },
        lines=tuple(lines),
        conclusion=(
            f"Bound by {time.bound}: between {fmt_seconds(time.lower_bound_s)} and {fmt_seconds(time.upper_bound_s)}."
        ),
        assumes=ASSUMES,
        sources=SOURCES,
        data={"bound": time.bound},
    )


def model_working(
    model: Model, *, step: ForwardStep, dtype: str, machine: Machine, stored: str = "", cache: str = ""
) -> Working:
    """Every kernel of a forward pass, with what binds it; `stored`, `cache`: formats of weights and keys, if others."""
    part, launch_s = machine.part, machine.launch_overhead_s
    matrix_peak, bandwidth, lines = _ridge_lines(machine, dtype)
    # Where a part lists no rate for ordinary arithmetic, that of its tensor cores stands in as a bound: such work is
    # then bound by memory alone.
    vector_peak = machine.vector_flops_per_s or matrix_peak
    rates = {"matrix_flops_per_s": matrix_peak, "vector_flops_per_s": vector_peak, "memory_bytes_per_s": bandwidth}
    ops = transformer.model_ops(model, step)
    rows = [
        _Row(op, _op_time(op, matrix_peak if op.unit == MATRIX else vector_peak, bandwidth, launch_s), model)
        for op in ops
    ]
    whole = transformer.model_time(ops, **rates, launch_overhead_s=launch_s)
    everything = transformer.total(ops)
    compute_s, memory_s = whole.compute_bound_s, whole.memory_bound_s
    lines += [
        Line(
            name="FLOPs of the pass",
            formula="sum of the rows",
            numbers=plain(everything.flops),
            value=everything.flops,
            unit="FLOP",
        ),
        Line(
            name="bytes of the pass",
            formula="sum of the rows",
            numbers=plain(everything.moved_bytes),
            value=everything.moved_bytes,
            unit="B",
        ),
        Line(
            name="kernels, one after another",
            formula="those bound by compute + those bound by memory",
            numbers=f"{plain(compute_s)} + {plain(memory_s)}",
            value=compute_s + memory_s,
            unit="s",
        ),
        Line(
            name="one pass, at least",
            formula="the longer of kernels and launches",
            numbers=f"max({plain(compute_s + memory_s)}, {plain(whole.overhead_s)})",
            value=whole.lower_bound_s,
            unit="s",
        ),
    ]
    return Working(
        title=f"{step.phase} of {model.name}, batch {step.batch}, {step.sequence:,} tokens, {dtype}, on {part.name}",
        inputs={
            "peak": fmt(matrix_peak, "FLOP/s") + ", dense",
            "bandwidth": fmt(bandwidth, "B/s"),
            "launch overhead": fmt_seconds(launch_s),
        },
        table=(HEAD, *(row.cells for row in rows)),
        lines=tuple(lines),
        conclusion=(
            f"Bound by {whole.bound}: at least {fmt_seconds(whole.lower_bound_s)}, at most"
            f" {fmt_seconds(whole.upper_bound_s)} per pass."
        )
        + _does_not_fit(model, step, part)
        + said_of_positions(model, step.sequence),
        assumes=(*ASSUMES, *_conventions(model, step, dtype, machine, stored, cache)),
        sources=SOURCES,
        data={"bound": whole.bound, "at_most_s": whole.upper_bound_s, "kernels": [row.data for row in rows]},
    )


HEAD = ("kernel", "launches", "FLOPs each", "bytes each", "FLOP/B", "bound by", "at least each", "in all")


@dataclass(frozen=True, slots=True)
class _Row:
    """One kernel of the table."""

    op: Op
    time: Time
    model: Model

    @property
    def name(self) -> str:
        """The kernel's name, with its layers' kind where a model has several."""
        if self.op.group is None or len(self.model.groups) == 1:
            return self.op.name
        attention = self.model.groups[self.op.group][0].attention
        window = attention.window if isinstance(attention, Attention) else None
        several = len({getattr(layer.attention, "window", None) for layer, _ in self.model.groups}) > 1
        kind = (f"window {window}" if window else "full") if several else f"group {self.op.group + 1}"
        return f"{self.op.name} ({kind})"

    @property
    def cells(self) -> tuple[str, ...]:
        work, each = self.op.work, self.time.lower_bound_s
        figures = (fmt_si(work.flops, "FLOP"), fmt_si(work.moved_bytes, "B"), f"{work.arithmetic_intensity:,.1f}")
        return (
            self.name,
            str(self.op.count),
            *figures,
            self.time.bound,
            fmt_seconds(each),
            fmt_seconds(self.op.count * each),
        )

    @property
    def data(self) -> dict[str, float | str]:
        work = self.op.work
        base = {
            "flops": work.flops,
            "moved_bytes": work.moved_bytes,
            "launches": self.op.count,
            "at_least_s": self.time.lower_bound_s,
        }
        return {"name": self.name, **base, "bound": self.time.bound}


def _does_not_fit(model: Model, step: ForwardStep, part: Part) -> str:
    weights = model_parameters(model).total * (step.weight_bytes_per_element or step.bytes_per_element)
    if weights <= part.capacity_bytes():
        return ""
    return (
        f" As if it fitted: its weights take {fmt_bytes(weights, base=10)}, and {part.name} has"
        f" {fmt_bytes(part.capacity_bytes(), base=10)}."
    )


def _conventions(model: Model, step: ForwardStep, dtype: str, machine: Machine, stored: str, cache: str) -> list[str]:
    """The choices that this count made."""
    said = [
        f"weights, activations and cache all in {dtype}"
        if not stored and not cache
        else f"weights kept in {stored or dtype}, cache in {cache or dtype}, all else, and matmuls, in {dtype}",
        f"attention {'fused' if step.fused_attention else 'unfused'}, causal {step.causal}",
    ]
    said.append(
        f"the output head runs for the {step.logits} token of each request"
        if step.logits == "last"
        else "the output head runs for all tokens"
    )
    if any(isinstance(layer.mlp, MoeMlp) for layer, _ in model.groups):
        said.append(f"tokens choose experts {step.routing}ly at random: an expert that nobody chose is not read")
    if any(isinstance(layer.attention, LatentAttention) for layer, _ in model.groups):
        said.append(f"latent attention {step.latent}")
    known = machine.vector_flops_per_s is not None
    said.append(
        "what is no matmul runs at the fp32 peak"
        if known
        else "no fp32 peak is listed: what is no matmul is held by memory alone"
    )
    return said


def _op_time(op: Op, peak: float, bandwidth: float, launch_s: float) -> Time:
    return roofline.time(
        op.work, peak_flops_per_s=peak, memory_bytes_per_s=bandwidth, launches=1, launch_overhead_s=launch_s
    )
