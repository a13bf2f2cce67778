"""Drills on what surrounds kernels: launches that a device waits for, graphs that replay them, and programs that have
to be compiled first.
"""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, changed, drawn
from threeloops.drills.engine.fair_draws import alike, too_close
from threeloops.drills.engine.searches import wanted
from threeloops.inner_loop import launches, padding
from threeloops.simulate.inner_loop import launch_queue
from threeloops.units import fmt_si, ms, us

TAUGHT = Taught("inner", "Overheads")

SOURCE_GUIDE = "NVIDIA, CUDA C++ Programming Guide 12.9, 2025 (asynchronous concurrent execution)"
SOURCE_GRAPHS = "Gray, Getting Started with CUDA Graphs, NVIDIA Technical Blog, 2019"
SOURCE_RECOMPILE = "PyTorch documentation, Dealing with Recompilations, 2025"

# --- the smallest kernel that keeps the device busy ----------------------------------------------

PARTS = ("a100-sxm4-80gb", "h100-sxm5", "rtx-4090")


def _draw_even(rng: random.Random) -> Draw:
    part = catalogued.part(rng.choice(PARTS))
    return drawn(
        part=part.name,
        memory=part["memory_bytes_per_s"],
        issue_s=rng.randrange(45, 150) / 10 * us,
        inputs=rng.choice((2, 4, 5)),
        bytes_per_element=rng.choice((2, 4)),
    )


def _small_even(rng: random.Random) -> Draw:
    # Bytes per second and seconds that divide evenly, so that a walk over whole elements meets the answer.
    inputs, bytes_per_element = rng.choice((2, 4, 5)), rng.choice((2, 4))
    elements = rng.randrange(20, 90)
    return drawn(
        part="toy",
        memory=(inputs + 1) * bytes_per_element,
        issue_s=float(elements),
        inputs=inputs,
        bytes_per_element=bytes_per_element,
    )


def _derive_even(p: Draw) -> Derivation:
    return Derivation(
        value=launches.break_even_bytes(issue_s=p.issue_s, memory_bytes_per_s=p.memory)
        / ((p.inputs + 1) * p.bytes_per_element),
        formula="time to issue × bandwidth / (bytes per element × (inputs + 1 output))",
        substitution=f"{p.issue_s:.9g} × {p.memory:.9g} / ({p.bytes_per_element} × ({p.inputs} + 1))",
        source=SOURCE_GUIDE,
    )


def _count_even(p: Draw) -> float:
    """Kernels grow by an element at a time, until the device no longer waits between two of them."""
    elements = 1
    while True:
        kernel_s = elements * (p.inputs + 1) * p.bytes_per_element / p.memory
        played = launch_queue.play([kernel_s] * 3, issue_s=p.issue_s, queue=8)
        if played.device_idle_s <= p.issue_s:  # before the first kernel it always waits
            return float(elements)
        elements += 1


EVEN = Drill(
    key="overheads-break-even",
    taught=TAUGHT,
    title="When the launch is hidden",
    unit="",
    target_s=120,
    draw=_draw_even,
    small=_small_even,
    prompt=lambda p: (
        f"A kernel combines {p.inputs} tensors of one size into another, element by element, with {p.bytes_per_element}"
        f" bytes per element. An {p.part} moves {fmt_si(p.memory, 'B/s')}; the processor needs {p.issue_s / us:.1f} µs"
        " to issue a kernel and runs ahead of the device. From how many elements on does the device no longer wait"
        " between two such kernels?"
    ),
    derive=_derive_even,
    count=_count_even,
    slips=(
        Slip("bytes-as-elements", lambda p: _derive_even(p).value * (p.inputs + 1) * p.bytes_per_element)
        | "You stopped at bytes. How many of them does one element of the result cost?",
        Slip("one-tensor", lambda p: _derive_even(p).value * (p.inputs + 1))
        | "You moved one tensor. The kernel reads all of its inputs and writes a result.",
        Slip("write-forgotten", lambda p: _derive_even(p).value * (p.inputs + 1) / p.inputs)
        | "You read the inputs and wrote nothing. The result has to reach memory as well.",
        Slip("one-byte-each", lambda p: _derive_even(p).value * p.bytes_per_element)
        | "You took an element for a byte. Read again which size it has.",
    ),
)

# --- a decode step, replayed ---------------------------------------------------------------------


def _draw_replay(rng: random.Random) -> Draw:
    kernel_s = rng.randrange(22, 45) / 10 * us
    return drawn(
        layers=rng.randrange(28, 90),
        ops=rng.randrange(10, 16),
        issue_s=round(kernel_s * rng.uniform(1.7, 2.8), 8),
        kernel_s=kernel_s,
        gap_s=round(kernel_s * rng.uniform(0.25, 0.45), 8),
        launch_s=rng.randrange(20, 60) * us,
    )


def _kernels(p: Draw) -> int:
    return int(p.layers * p.ops)


def _replayed(p: Draw) -> float:
    return launches.replayed_s(num_kernels=_kernels(p), kernel_s=p.kernel_s, graph_launch_s=p.launch_s, gap_s=p.gap_s)


REPLAY = Drill(
    key="overheads-graph-replay",
    taught=TAUGHT,
    title="A decode step from a recording",
    unit="s",
    target_s=120,
    draw=_draw_replay,
    small=lambda rng: changed(_draw_replay(rng), layers=rng.randrange(2, 6)),
    prompt=lambda p: (
        f"A decode step is {p.layers} layers of {p.ops} kernels. Each kernel runs {p.kernel_s / us:.2f} µs, and the"
        f" processor needs {p.issue_s / us:.2f} µs to issue it. The step is recorded as a graph: launching that takes"
        f" {p.launch_s / us:.0f} µs, and the device then leaves a gap of {p.gap_s / us:.2f} µs before each kernel. How"
        " long does the replayed step take, from the launch to the end of the last kernel?"
    ),
    derive=lambda p: Derivation(
        value=_replayed(p),
        formula="launching the graph + layers × kernels per layer × (kernel + gap)",
        substitution=f"{p.launch_s:.9g} + {p.layers} × {p.ops} × ({p.kernel_s:.9g} + {p.gap_s:.9g})",
        source=SOURCE_GRAPHS,
    ),
    count=lambda p: launch_queue.replay([p.kernel_s] * _kernels(p), launch_s=p.launch_s, gap_s=p.gap_s).finished_s,
    slips=(
        Slip(
            "not-replayed", lambda p: launches.queued_s(num_kernels=_kernels(p), issue_s=p.issue_s, kernel_s=p.kernel_s)
        )
        | "That is the step before it was recorded: the processor still issues every kernel.",
        Slip("no-gaps", lambda p: _replayed(p) - _kernels(p) * p.gap_s)
        | "You let the kernels touch each other. The device needs a moment between two of them.",
        Slip("still-issued", lambda p: _replayed(p) + _kernels(p) * p.issue_s)
        | "You issued every kernel as well. The recording is issued once, as a whole.",
        Slip("one-layer", lambda p: p.launch_s + p.ops * (p.kernel_s + p.gap_s))
        | "You replayed one layer. The recording holds all of them.",
    ),
)

# --- until the compiler has paid for itself ------------------------------------------------------


def _draw_paid(rng: random.Random) -> Draw:
    before = rng.randrange(120, 330)
    return drawn(
        compile_s=float(rng.randrange(25, 300)),
        before_s=before * ms,
        after_s=round(before / rng.uniform(1.15, 1.42)) * ms,
    )


def _small_paid(rng: random.Random) -> Draw:
    saved, calls, after = rng.randrange(2, 9), rng.randrange(11, 60), rng.randrange(13, 40)
    return drawn(compile_s=float(saved * calls), before_s=float(after + saved), after_s=float(after))


def _count_paid(p: Draw) -> float:
    """Two clocks, one of which starts late and runs faster."""
    eager, compiled, steps = 0.0, p.compile_s, 0
    while compiled > eager:
        eager, compiled, steps = eager + p.before_s, compiled + p.after_s, steps + 1
    return float(steps)


PAID = Drill(
    key="overheads-compile-paid",
    taught=TAUGHT,
    title="Paid back by the compiler",
    unit="",
    target_s=75,
    draw=_draw_paid,
    small=_small_paid,
    prompt=lambda p: (
        f"A training step takes {p.before_s / ms:.0f} ms. Compiled it takes {p.after_s / ms:.0f} ms, and compiling"
        f" takes {p.compile_s:.0f} s, once, during which nothing is trained. After how many steps has compiling paid"
        " for itself?"
    ),
    derive=lambda p: Derivation(
        value=launches.calls_until_paid(compile_s=p.compile_s, before_s=p.before_s, after_s=p.after_s),
        formula="time to compile / (step before - step after)",
        substitution=f"{p.compile_s:.9g} / ({p.before_s:.9g} - {p.after_s:.9g})",
        source="PyTorch documentation, torch.compile tutorial, 2025",
    ),
    count=_count_paid,
    slips=(
        Slip("old-steps", lambda p: p.compile_s / p.before_s)
        | "You counted the old steps that fit into compiling. What does each new step save?",
        Slip("new-steps", lambda p: p.compile_s / p.after_s)
        | "You counted the new steps that fit into compiling. What does each of them save?",
        Slip("speed-up", lambda p: p.compile_s * p.before_s / p.after_s)
        | "You multiplied by a speed-up. That is a ratio; what is paid back is a difference.",
        Slip("added", lambda p: p.compile_s / (p.before_s + p.after_s))
        | "You added the two kinds of step. One takes the place of the other.",
    ),
)

# --- shapes that are left after padding ----------------------------------------------------------


def _draw_shapes(rng: random.Random) -> Draw:
    """Lengths that are multiples, until they will do; then lengths short of these, which have as many shapes."""

    def draw() -> Draw:
        multiple, first, last = rng.choice((24, 40, 56, 72, 88)), rng.randrange(7, 14), rng.randrange(26, 66)
        return drawn(shortest=(first + 1) * multiple, longest=last * multiple, multiple=multiple)

    p = wanted(draw, lambda p: not alike(SHAPES, p))
    p.shortest -= p.multiple - rng.randrange(3, p.multiple - 3)
    p.longest -= rng.randrange(3, p.multiple - 3)
    return p


def _unlike_the_multiple(p: Draw) -> bool:
    """No result comes close to the multiple, which stands in the question."""
    return too_close(SHAPES.results(p) | {"the multiple": p.multiple}, SHAPES.apart) is None


def _shapes(p: Draw) -> int:
    return padding.num_shapes(shortest=p.shortest, longest=p.longest, multiple=p.multiple)


def _count_shapes(p: Draw) -> float:
    """Every length that occurs, padded one position at a time; every new one is compiled."""
    compiled = set()
    for length in range(p.shortest, p.longest + 1):
        while length % p.multiple:
            length += 1
        compiled.add(length)
    return float(len(compiled))


SHAPES = Drill(
    key="overheads-padded-shapes",
    taught=TAUGHT,
    title="Compiled once per shape",
    unit="",
    whole="exact",
    target_s=90,
    apart=1.06,
    wanted=_unlike_the_multiple,
    draw=_draw_shapes,
    small=_draw_shapes,
    prompt=lambda p: (
        f"A model is compiled for fixed shapes. Sequences have every length from {p.shortest} to {p.longest} sooner or"
        f" later, and each is padded to the next multiple of {p.multiple}. How many times is the model compiled in all,"
        " if no limit stops it?"
    ),
    derive=lambda p: Derivation(
        value=float(_shapes(p)),
        formula="ceil(longest / multiple) - ceil(shortest / multiple) + 1",
        substitution=f"ceil({p.longest} / {p.multiple}) - ceil({p.shortest} / {p.multiple}) + 1",
        source=SOURCE_RECOMPILE,
    ),
    count=_count_shapes,
    slips=(
        Slip("every-length", lambda p: float(p.longest - p.shortest + 1))
        | "You compiled for every length. Padded lengths are fewer.",
        Slip("from-nothing", lambda p: float(-(-p.longest // p.multiple)))
        | "You began at length zero. Shorter sequences do not occur.",
        Slip("shorter-ones", lambda p: float(-(-p.shortest // p.multiple)))
        | "You counted the multiples below the range. Which lie in it?",
        Slip("padding-per-sequence", lambda p: (p.multiple - 1) / 2)
        | "That is how many positions padding wastes in a sequence. The question is how many lengths are left.",
        Slip("both-ends-added", lambda p: float(-(-p.longest // p.multiple) + -(-p.shortest // p.multiple)))
        | "You added the two ends of the range. Count what lies between them.",
    ),
)

DRILLS = (EVEN, REPLAY, PAID, SHAPES)
