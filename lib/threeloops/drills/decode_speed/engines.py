"""A drill on an engine's switches: narrow weights in a step that its launches hold up."""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.inner_loop import launches
from threeloops.simulate.inner_loop import launch_queue
from threeloops.units import GB, fmt_si, us

TAUGHT = Taught("product", "Engines and compilers")

SOURCE = "NVIDIA, CUDA C++ Programming Guide 12.9, 2025 (asynchronous concurrent execution)"
PARTS = ("a100-sxm4-80gb", "h100-sxm5", "h200-sxm")
NARROW_BITS = (4, 8)


def _host_share(rng: random.Random, narrow_bits: int) -> float:
    """The host's time, in that of the wide weights: between narrow and wide, and narrow + host is neither."""
    return narrow_bits / 16 + rng.uniform(0.15, 0.33)


def _draw(rng: random.Random) -> Draw:
    """Before: the device sets the pace. After: the host does, by a clear margin on both sides."""
    part = catalogued.part(rng.choice(PARTS))
    memory = part["memory_bytes_per_s"]
    weights_bytes = rng.randrange(13, 30) * GB
    narrow_bits = rng.choice(NARROW_BITS)
    wide_s = weights_bytes / memory
    kernels = rng.randrange(600, 1700, 20)
    return drawn(
        part=part.name,
        memory=memory,
        weights_bytes=weights_bytes,
        narrow_bits=narrow_bits,
        kernels=kernels,
        issue_s=round(wide_s * _host_share(rng, narrow_bits) / kernels / us, 2) * us,
    )


def _small(rng: random.Random) -> Draw:
    kernels, narrow_bits = rng.randrange(7, 30), rng.choice(NARROW_BITS)
    each = rng.randrange(10, 40) * 16
    return drawn(
        part="toy",
        memory=1.0,
        weights_bytes=kernels * each,
        narrow_bits=narrow_bits,
        kernels=kernels,
        issue_s=float(round(each * _host_share(rng, narrow_bits))),
    )


def _device_s(p: Draw, *, bits: float) -> float:
    return float(p.weights_bytes * bits / 16 / p.memory)


def _step_s(p: Draw, *, bits: float) -> float:
    return launches.queued_s(num_kernels=p.kernels, issue_s=p.issue_s, kernel_s=_device_s(p, bits=bits) / p.kernels)


def _count(p: Draw) -> float:
    kernel_s = p.weights_bytes * p.narrow_bits / 16 / p.memory / p.kernels
    return launch_queue.play([kernel_s] * p.kernels, issue_s=p.issue_s, queue=p.kernels).finished_s


NARROW = Drill(
    key="engine-narrow-weights",
    taught=TAUGHT,
    title="Narrow weights, same launches",
    unit="s",
    target_s=120,
    draw=_draw,
    small=_small,
    prompt=lambda p: (
        f"A decode step on an {p.part} ({fmt_si(p.memory, 'B/s')}) is {p.kernels:,} kernels, which together read"
        f" {p.weights_bytes / GB:g} GB of weights in 16 bits; everything else is negligible. The host issues the"
        f" kernels one by one, {p.issue_s / us:.2f} µs each, and runs ahead where it can. The weights are now stored in"
        f" {p.narrow_bits} bits (scales not counted); kernels and launches stay as they are. How long does the step"
        " take?"
    ),
    derive=lambda p: Derivation(
        value=_step_s(p, bits=p.narrow_bits),
        formula="kernels × max(time to issue, time of a kernel) + the shorter of the two once",
        substitution=(
            f"{p.kernels} × max({p.issue_s:.9g}, {_device_s(p, bits=p.narrow_bits):.9g} / {p.kernels})"
            f" + min({p.issue_s:.9g}, {_device_s(p, bits=p.narrow_bits):.9g} / {p.kernels})"
        ),
        source=SOURCE,
    ),
    count=_count,
    slips=(
        Slip("bytes-only", lambda p: _device_s(p, bits=p.narrow_bits))
        | "That is how long the device is busy. The CPU has to issue the kernels, too.",
        Slip("added", lambda p: p.kernels * p.issue_s + _device_s(p, bits=p.narrow_bits))
        | "You let the host wait for each kernel. It runs ahead: the longer of the two counts.",
        Slip("unchanged", lambda p: _step_s(p, bits=16))
        | "That is the step before. The weights set its pace then; do they still?",
        Slip("bits-kept", lambda p: _device_s(p, bits=16) + p.kernels * p.issue_s)
        | "You read 16 bits per weight and added the launches. How many bits are left? What runs beside it?",
    ),
)

DRILLS: tuple[Drill, ...] = (NARROW,)
