"""`threeloops roofline`: is this work limited by arithmetic, by memory traffic, or by launching it?"""

from threeloops import dtypes, kernels, roofline, transformer
from threeloops.forward_step import MATRIX, Op, Step
from threeloops.hardware import Part
from threeloops.models import Model
from threeloops.roofline import Time, Work
from threeloops.units import fmt, fmt_seconds, fmt_si
from threeloops.workings.working import Line, Working, plain

SOURCES = ("Williams, Waterman, Patterson, CACM 52(4), 2009, doi:10.1145/1498765.1498785",)
ASSUMES = (
    "every operand crosses device memory once; caches hold nothing from one kernel to the next",
    "dense peak and full bandwidth: divide by measured ceilings for what a kernel reaches",
)


def _ridge_lines(part: Part, dtype: str) -> tuple[float, float, list[Line]]:
    peak, bandwidth = part.peak_flops_per_s(dtype), part["memory_bytes_per_s"]
    ridge = roofline.ridge_point(peak_flops_per_s=peak, memory_bytes_per_s=bandwidth)
    return peak, bandwidth, [Line(name="ridge point", formula="peak / bandwidth", numbers=f"{plain(peak)} / {plain(bandwidth)}", value=ridge, unit="FLOP/B")]


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
        Line(name="computing", formula="FLOPs / peak", numbers=f"{plain(work.flops)} / {plain(peak)}", value=time.compute_s, unit="s"),
        Line(name="moving", formula="bytes moved / bandwidth", numbers=f"{plain(work.moved_bytes)} / {plain(bandwidth)}", value=time.memory_s, unit="s"),
        Line(name="launching", formula="launches × launch overhead", numbers=f"1 × {plain(launch_s)}", value=time.overhead_s, unit="s"),
        Line(name="at least", formula="the longest: all of it overlaps", numbers=f"max({', '.join(parts)})", value=time.lower_bound_s, unit="s"),
        Line(name="at most", formula="the sum: nothing overlaps", numbers=" + ".join(parts), value=time.upper_bound_s, unit="s"),
    ]


def gemm_working(*, m: int, n: int, k: int, dtype: str, part: Part, launch_overhead_s: float) -> Working:
    """One matrix product on one accelerator."""
    element = dtypes.bytes_per_element(dtype)
    work = kernels.gemm(m=m, n=n, k=k, bytes_per_element=element)
    peak, bandwidth, lines = _ridge_lines(part, dtype)
    time = roofline.time(work, peak_flops_per_s=peak, memory_bytes_per_s=bandwidth, launches=1, launch_overhead_s=launch_overhead_s)
    moved = ("(m × k + k × n + m × n) × bytes", f"({m} × {k} + {k} × {n} + {m} × {n}) × {element:g}")
    lines += _work_lines(work, ("2 × m × n × k", f"2 × {m} × {n} × {k}"), moved)
    lines += _time_lines(work, time, peak=peak, bandwidth=bandwidth, launch_s=launch_overhead_s)
    return Working(
        title=f"GEMM [{m} × {k}] · [{k} × {n}] in {dtype} on {part.name}",
        inputs={"peak": fmt(peak, "FLOP/s") + ", dense", "bandwidth": fmt(bandwidth, "B/s"), "launch overhead": fmt_seconds(launch_overhead_s)},
        lines=tuple(lines),
        conclusion=f"Bound by {time.bound}: between {fmt_seconds(time.lower_bound_s)} and {fmt_seconds(time.upper_bound_s)}.",
        assumes=ASSUMES,
        sources=SOURCES,
        data={"bound": time.bound},
    )


def model_working(model: Model, *, step: Step, dtype: str, part: Part, launch_overhead_s: float) -> Working:
    """Every kernel of one forward pass of a model, with what binds it."""
    matrix_peak, bandwidth, lines = _ridge_lines(part, dtype)
    vector_peak = part.peak_flops_per_s("fp32")
    ops = transformer.model_ops(model, step)
    times = [_op_time(op, matrix_peak, vector_peak, bandwidth, launch_overhead_s) for op in ops]
    whole = transformer.serial_time(
        ops, matrix_flops_per_s=matrix_peak, vector_flops_per_s=vector_peak, memory_bytes_per_s=bandwidth, launch_overhead_s=launch_overhead_s
    )
    table = {
        f"{op.name} × {op.count}": f"{fmt_si(op.work.flops, 'FLOP'):>11}  {fmt_si(op.work.moved_bytes, 'B'):>8}  "
        f"{op.work.arithmetic_intensity:>8.1f} FLOP/B  {time.bound:<8}  {fmt_seconds(time.lower_bound_s)}"
        for op, time in zip(ops, times, strict=True)
    }
    fused = "fused" if step.fused_attention else "unfused"
    conventions = f"attention {fused}, causal {step.causal}, logits of {step.logits} tokens"
    bounds = f"{plain(whole.compute_bound_s)} + {plain(whole.memory_bound_s)}"
    lines += [
        Line(
            name="one pass, at least",
            formula="kernels one after another, each at its own roof; launches overlap",
            numbers=f"max({bounds}, {plain(whole.overhead_s)})",
            value=whole.lower_bound_s,
            unit="s",
        )
    ]
    return Working(
        title=f"{step.phase} of {model.name}, batch {step.batch}, {step.sequence:,} tokens, {dtype}, on {part.name}",
        inputs=table,
        lines=tuple(lines),
        conclusion=f"Bound by {whole.bound}: at least {fmt_seconds(whole.lower_bound_s)}, at most {fmt_seconds(whole.upper_bound_s)} per pass.",
        assumes=(*ASSUMES, conventions, "what is no matrix product runs at the fp32 peak"),
        sources=SOURCES,
        data={"bound": whole.bound},
    )


def _op_time(op: Op, matrix_peak: float, vector_peak: float, bandwidth: float, launch_s: float) -> Time:
    peak = matrix_peak if op.unit == MATRIX else vector_peak
    return roofline.time(op.work, peak_flops_per_s=peak, memory_bytes_per_s=bandwidth, launches=1, launch_overhead_s=launch_s)
