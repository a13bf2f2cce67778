"""One matrix product, and the lines that any work has: ridge point, FLOPs, bytes, times."""

from dataclasses import dataclass

from threeloops import dtypes
from threeloops.commands.working import Line, Working, plain
from threeloops.facts.hardware import Part
from threeloops.operations import kernels, roofline
from threeloops.operations.roofline import Time, Work
from threeloops.units import fmt, fmt_seconds

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


def ridge_lines(machine: Machine, dtype: str) -> tuple[float, float, list[Line]]:
    """A machine's peak (FLOP/s) in a format and its bandwidth (B/s), and the line of a working that divides them."""
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


def work_lines(work: Work, flops: tuple[str, str], moved: tuple[str, str]) -> list[Line]:
    """The lines of a working on FLOPs, bytes and arithmetic intensity; flops, moved: how each is counted, in words and
    in numbers.
    """
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


def time_lines(work: Work, time: Time, *, peak: float, bandwidth: float, launch_s: float) -> list[Line]:
    """The lines of a working on the least seconds: computing at the peak (FLOP/s), moving at the bandwidth (B/s),
    launching, and the longest of the three, since they overlap.
    """
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
    peak, bandwidth, lines = ridge_lines(machine, dtype)
    time = roofline.time(
        work, peak_flops_per_s=peak, memory_bytes_per_s=bandwidth, launches=1, launch_overhead_s=launch_overhead_s
    )
    moved = ("(m × k + k × n + m × n) × bytes", f"({m} × {k} + {k} × {n} + {m} × {n}) × {element:g}")
    lines += work_lines(work, ("2 × m × n × k", f"2 × {m} × {n} × {k}"), moved)
    lines += time_lines(work, time, peak=peak, bandwidth=bandwidth, launch_s=launch_overhead_s)
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
