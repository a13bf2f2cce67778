"""A whole forward pass, kernel by kernel, with what binds each."""

from dataclasses import dataclass

from threeloops.commands.roofline.gemm import ASSUMES, SOURCES, Machine, ridge_lines
from threeloops.commands.working import Line, Working, plain, said_of_positions
from threeloops.facts.hardware import Part
from threeloops.models import transformer
from threeloops.models.architecture import Attention, LatentAttention, Model, MoeMlp
from threeloops.models.forward_step import MATRIX, ForwardStep, Op
from threeloops.models.parameters import model_parameters
from threeloops.operations import roofline
from threeloops.operations.roofline import Time
from threeloops.units import fmt, fmt_bytes, fmt_seconds, fmt_si


def model_working(
    model: Model, *, step: ForwardStep, dtype: str, machine: Machine, stored: str = "", cache: str = ""
) -> Working:
    """Every kernel of a forward pass, with what binds it; `stored`, `cache`: formats of weights and keys, if others."""
    part, launch_s = machine.part, machine.launch_overhead_s
    matrix_peak, bandwidth, lines = ridge_lines(machine, dtype)
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
