"""Drills on what runs where: ridge points, a network's floor, engines side by side, the memory they share, and a
language model in the car.
"""

import random
from fractions import Fraction

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.searches import holds_up_to
from threeloops.driving import soc_fit
from threeloops.driving.soc_fit import Stage
from threeloops.operations import roofline
from threeloops.product_loop import decode_floor
from threeloops.simulate.driving import shared_bus
from threeloops.simulate.driving.shared_bus import Job
from threeloops.units import BITS_PER_BYTE, GB, GFLOP, MB, TFLOP, billion, ms

TAUGHT = Taught("driving", "Silicon in the car")
ROOFLINE = "Williams, Waterman, Patterson, CACM 52(4), 2009, doi:10.1145/1498765.1498785"
PIPELINING = (
    "Hennessy and Patterson, Computer Architecture, 6th ed., 2017, appendix C.1 (the slowest resource sets a pipeline's"
    " rate)"
)

# --- ridge point ---------------------------------------------------------------------------------


def _draw_ridge(rng: random.Random) -> Draw:
    gpu = rng.randrange(90, 240, 2)
    return drawn(gpu=gpu, dla=2 * round(gpu * rng.uniform(0.2, 0.42)), bandwidth=rng.randrange(90, 280))


def _count_ridge(p: Draw) -> float:
    """Give every byte more and more work, halving the interval, until computing takes as long as reading."""
    return holds_up_to(lambda work: work / (p.gpu / 2 * TFLOP) < 1 / (p.bandwidth * GB), high=1e5)


RIDGE = Drill(
    key="soc-ridge-point",
    taught=TAUGHT,
    title="Where the chip stops waiting for memory",
    unit="FLOP/B",
    target_s=75,
    draw=_draw_ridge,
    small=_draw_ridge,
    prompt=lambda p: (
        f"A chip lists {p.gpu} INT8 TOPS on its GPU and {p.dla} on its DLAs, both with sparse weights, and"
        f" {p.bandwidth} GB/s of memory bandwidth. How many operations per byte must a network with dense INT8 weights"
        " do on the GPU before the GPU, not the memory, is the limit?"
    ),
    derive=lambda p: Derivation(
        value=roofline.ridge_point(peak_flops_per_s=p.gpu / 2 * TFLOP, memory_bytes_per_s=p.bandwidth * GB),
        formula="(sparse rate of the GPU / 2) / bandwidth",
        substitution=f"({p.gpu} / 2 × 1e12) / ({p.bandwidth} × 1e9)",
        source=ROOFLINE,
    ),
    count=_count_ridge,
    prerequisites=("soc-dense-gpu",),
    slips=(
        Slip("sparse", lambda p: p.gpu * TFLOP / (p.bandwidth * GB))
        | "That is with the sparse rate. Dense weights reach half of it.",
        Slip("with-dla", lambda p: (p.gpu + p.dla) / 2 * TFLOP / (p.bandwidth * GB))
        | "The DLAs are in it. The network runs on the GPU.",
        Slip("brochure", lambda p: (p.gpu + p.dla) * TFLOP / (p.bandwidth * GB))
        | "You divided the brochure's total, DLAs and sparsity included.",
        Slip("bits", lambda p: p.gpu / 2 * TFLOP / (p.bandwidth * GB) / BITS_PER_BYTE) | "Per bit. Asked is per byte.",
    ),
)

# --- floor of a network --------------------------------------------------------------------------


def _draw_floor(rng: random.Random) -> Draw:
    """Between what the memory and what the arithmetic takes lies at least a factor of 1.28, the memory being slower."""
    bandwidth, peak = rng.randrange(100, 280), rng.randrange(50, 90)
    weights, values = rng.randrange(22, 60), rng.randrange(110, 260)
    reading = (weights + 2 * values) * MB / (bandwidth * GB)
    ops = round(reading / (rng.randrange(128, 150) / 100) * peak * TFLOP / GFLOP)
    return drawn(bandwidth=bandwidth, peak=peak, weights=weights, values=values, gops=ops)


def _floor_stage(p: Draw) -> Stage:
    return Stage(
        name="network",
        engine="gpu",
        ops=p.gops * GFLOP,
        moved_bytes=(p.weights + 2 * p.values) * MB,
        peak_ops_per_s=p.peak * TFLOP,
    )


def _small_floor(rng: random.Random) -> Draw:
    """In what the memory carries in a millisecond, so that the end is the end of a slice."""
    bandwidth = rng.randrange(100, 280)
    weights, values = bandwidth * rng.randrange(1, 3), bandwidth * rng.randrange(5, 9)
    return drawn(bandwidth=bandwidth, peak=rng.randrange(50, 90), weights=weights, values=values, gops=3)


def _count_floor(p: Draw) -> float:
    """Hand out slices of a tenth of a millisecond until all is read, written and computed."""
    slice_s = ms / 10
    job = Job(
        engine="gpu",
        ops=p.gops * GFLOP,
        moved_bytes=(p.weights + 2 * p.values) * MB,
        ops_per_slice=p.peak * TFLOP * slice_s,
    )
    (end,) = shared_bus.frame_slices([[job]], bus_bytes_per_slice=p.bandwidth * GB * slice_s)
    return end * slice_s


FLOOR = Drill(
    key="soc-latency-floor",
    taught=TAUGHT,
    title="The least a network can take",
    unit="s",
    target_s=110,
    draw=_draw_floor,
    small=_small_floor,
    prompt=lambda p: (
        f"A camera network in INT8 does {p.gops} billion operations on a frame. It has {p.weights} MB of weights, and"
        f" its layers write {p.values} MB of activations, each written to memory once and read back once. The chip has"
        f" {p.peak} dense INT8 TOPS and {p.bandwidth} GB/s. What is the least time of a frame, if computing and moving"
        " overlap perfectly?"
    ),
    derive=lambda p: Derivation(
        value=soc_fit.stage_s(_floor_stage(p), memory_bytes_per_s=p.bandwidth * GB, sharers=1),
        formula="max(operations / peak, (weights + 2 × activations) / bandwidth)",
        substitution=(
            f"max({p.gops} × 1e9 / ({p.peak} × 1e12), ({p.weights} + 2 × {p.values}) × 1e6 / ({p.bandwidth} × 1e9))"
        ),
        source=ROOFLINE,
    ),
    count=_count_floor,
    prerequisites=("soc-ridge-point",),
    slips=(
        Slip("arithmetic", lambda p: p.gops * GFLOP / (p.peak * TFLOP))
        | "That is the arithmetic alone. Does it take longer than moving the bytes?",
        Slip("sum", lambda p: p.gops * GFLOP / (p.peak * TFLOP) + (p.weights + 2 * p.values) * MB / (p.bandwidth * GB))
        | "You added both. They overlap: the longer one counts.",
        Slip("weights-only", lambda p: p.weights * MB / (p.bandwidth * GB))
        | "You moved the weights only. In a camera network the activations are most of the bytes.",
        Slip("written-only", lambda p: (p.weights + p.values) * MB / (p.bandwidth * GB))
        | "What is written has to be read again by the next layer.",
    ),
    function=AsFunction(
        takes=("gops", "weights", "values", "peak", "bandwidth"),
        limit={"values": 0, "weights": 1},
        limit_case="a network whose activations never leave the chip",
    ),
)

# --- engines side by side ------------------------------------------------------------------------


def _small_period(rng: random.Random) -> Draw:
    """In tenths of a millisecond, which are the count's slices."""
    return drawn(
        backbone=rng.randrange(95, 108) / 10,
        fusion=rng.randrange(50, 60) / 10,
        heads=rng.randrange(66, 72) / 10,
        planner=rng.randrange(15, 25) / 10,
    )


def _count_period(p: Draw) -> float:
    """Send a dozen frames through, a tenth of a millisecond at a time, and look how far apart the last ones are."""
    jobs = [
        Job(engine=engine, ops=10 * took, moved_bytes=0, ops_per_slice=1)
        for engine, took in (("dla", p.backbone), ("gpu", p.fusion), ("gpu", p.heads), ("cpu", p.planner))
    ]
    ends = shared_bus.frame_slices([jobs] * 12, bus_bytes_per_slice=1)
    return (ends[-1] - ends[5]) / 6 / 10 * ms


PERIOD = Drill(
    key="soc-period",
    taught=TAUGHT,
    title="How often a frame can come",
    unit="s",
    target_s=75,
    draw=lambda rng: drawn(
        backbone=rng.randrange(950, 1080) / 100,
        fusion=rng.randrange(500, 600) / 100,
        heads=rng.randrange(660, 720) / 100,
        planner=rng.randrange(150, 250) / 100,
    ),
    small=_small_period,
    prompt=lambda p: (
        f"A pipeline's stages take: backbone {p.backbone:g} ms on the DLA, fusion {p.fusion:g} ms and heads"
        f" {p.heads:g} ms on the GPU, planner {p.planner:g} ms on the CPU. Engines work on different frames at the same"
        " time, each on one stage at a time; the memory is no limit. How far apart do results come at least?"
    ),
    derive=lambda p: Derivation(
        value=soc_fit.period_s(_placed(p), memory_bytes_per_s=1.0),
        formula="the longest time that one engine needs for a frame: max(DLA, GPU's two stages, CPU)",
        substitution=f"max({p.backbone}, {p.fusion} + {p.heads}, {p.planner}) × 1e-3",
        source=PIPELINING,
    ),
    count=_count_period,
    slips=(
        Slip("slowest-stage", lambda p: p.backbone * ms) | "That is the slowest stage. Two stages share an engine.",
        Slip("latency", lambda p: (p.backbone + p.fusion + p.heads + p.planner) * ms)
        | "That is the latency of one frame. The engines work on several frames at once.",
        Slip("mean", lambda p: (p.backbone + p.fusion + p.heads + p.planner) / 3 * ms)
        | "You shared the work out evenly among three engines. Stages stay where they were placed.",
        Slip("heads-only", lambda p: p.heads * ms) | "The GPU has a second stage in every frame.",
    ),
)


def _placed(p: Draw) -> list[Stage]:
    """Each stage's milliseconds as operations on an engine that does one per millisecond."""
    return [
        Stage(name=name, engine=engine, ops=took, moved_bytes=0, peak_ops_per_s=1 / ms)
        for name, engine, took in (
            ("backbone", "dla", p.backbone),
            ("fusion", "gpu", p.fusion),
            ("heads", "gpu", p.heads),
            ("planner", "cpu", p.planner),
        )
    ]


# --- shared memory -------------------------------------------------------------------------------


def _draw_shared(rng: random.Random) -> Draw:
    """Each engine would be fast enough alone; together they ask for more than the memory carries."""
    bandwidth, gpu = rng.randrange(100, 280), rng.randrange(900, 1500)
    carrying_ms = gpu * MB / (bandwidth * GB) / ms
    return drawn(
        bandwidth=bandwidth,
        gpu_mb=gpu,
        dla_mb=round(gpu * rng.uniform(0.45, 0.59)),
        gpu_ms=round(carrying_ms * rng.randrange(104, 109) / 100, 2),
        dla_ms=round(carrying_ms * rng.randrange(71, 79) / 100, 2),
    )


def _small_shared(rng: random.Random) -> Draw:
    """In tenths of a millisecond, which are the count's slices, and in what the memory carries in them."""
    bandwidth = 10 * rng.randrange(10, 28)
    gpu, dla = rng.randrange(60, 90, 2), rng.randrange(32, 40, 2)
    return drawn(
        bandwidth=bandwidth,
        gpu_mb=bandwidth * gpu / 10,
        dla_mb=bandwidth * dla / 10,
        gpu_ms=(gpu + rng.randrange(5, 9)) / 10,
        dla_ms=(dla + rng.randrange(5, 9)) / 10,
    )


def _count_shared(p: Draw) -> float:
    """Hand a dozen frames from the GPU to the DLA, a tenth of a millisecond at a time, and look how far apart the
    last ones are.
    """
    slice_s = ms / 10
    jobs = [
        Job(engine=engine, ops=took * ms, moved_bytes=size * MB, ops_per_slice=slice_s)
        for engine, took, size in (("gpu", p.gpu_ms, p.gpu_mb), ("dla", p.dla_ms, p.dla_mb))
    ]
    ends = shared_bus.frame_slices([jobs] * 12, bus_bytes_per_slice=p.bandwidth * GB * slice_s)
    return (ends[-2] - ends[5]) * slice_s / 5  # the last frame has the memory to itself in the end


SHARED = Drill(
    key="soc-shared-memory",
    taught=TAUGHT,
    title="Two engines, one memory",
    unit="s",
    target_s=110,
    draw=_draw_shared,
    small=_small_shared,
    prompt=lambda p: (
        f"Alone, the GPU's stage takes {p.gpu_ms:g} ms and moves {p.gpu_mb:,} MB; alone, the DLA's takes"
        f" {p.dla_ms:g} ms and moves {p.dla_mb} MB. Both run at once, on different frames, and share"
        f" {p.bandwidth} GB/s. What is the least time between two results?"
    ),
    derive=lambda p: Derivation(
        value=_shared_period_s(p),
        formula="max(GPU alone, DLA alone, all bytes / bandwidth)",
        substitution=(
            f"max({p.gpu_ms} × 1e-3, {p.dla_ms} × 1e-3, ({p.gpu_mb} + {p.dla_mb}) × 1e6 / ({p.bandwidth} × 1e9))"
        ),
        source=PIPELINING,
    ),
    count=_count_shared,
    prerequisites=("soc-period",),
    slips=(
        Slip("no-memory", lambda p: max(p.gpu_ms, p.dla_ms) * ms)
        | "That is the slower engine alone. How many bytes does the memory carry meanwhile?",
        Slip("one-after-the-other", lambda p: (p.gpu_ms + p.dla_ms) * ms)
        | "You ran one after the other. They work at the same time.",
        Slip("twice-the-slower", lambda p: 2 * p.gpu_mb * MB / (p.bandwidth * GB))
        | "You gave the GPU half the memory all the time. The DLA asks for fewer bytes than that.",
        Slip("dla-bytes", lambda p: p.dla_mb * MB / (p.bandwidth * GB))
        | "Those are the DLA's bytes only. The GPU's go over the same bus.",
    ),
    function=AsFunction(
        takes=("gpu_ms", "gpu_mb", "dla_ms", "dla_mb", "bandwidth"),
        limit=lambda p: {"gpu_mb": 3, "dla_mb": 2},
        limit_case="two engines that hardly touch the memory",
    ),
)


def _shared_period_s(p: Draw) -> float:
    stages = [
        Stage(name=engine, engine=engine, ops=took, moved_bytes=size * MB, peak_ops_per_s=1 / ms)
        for engine, size, took in (("gpu", p.gpu_mb, p.gpu_ms), ("dla", p.dla_mb, p.dla_ms))
    ]
    return soc_fit.period_s(stages, memory_bytes_per_s=p.bandwidth * GB)


# --- a language model in the car -----------------------------------------------------------------


def _draw_tokens(rng: random.Random) -> Draw:
    billions, bits = rng.randrange(20, 90) / 10, rng.choice((4, 8))
    weights_mb = billions * billion * bits / BITS_PER_BYTE / MB
    cache_mb = round(weights_mb * rng.uniform(0.08, 0.3))
    return drawn(bandwidth=rng.randrange(200, 280), billions=billions, bits=bits, cache_mb=cache_mb)


def _count_tokens(p: Draw) -> float:
    """Read the weights of one token billion by billion, and its cache, and see how often that fits into a second."""
    read = Fraction(0)
    for _tenth in range(round(10 * p.billions)):
        read += Fraction(p.bits, BITS_PER_BYTE) * GB / 10
    read += p.cache_mb * MB
    return float(p.bandwidth * GB / read)


def _token_s(p: Draw) -> float:
    return decode_floor.tensor_parallel_step_s(
        weights_bytes=p.billions * billion * p.bits / BITS_PER_BYTE,
        cache_bytes=p.cache_mb * MB,
        tp=1,
        memory_bytes_per_s=p.bandwidth * GB,
        all_reduces=0,
        all_reduce_s=0,
    )


TOKENS = Drill(
    key="soc-tokens-per-second",
    taught=TAUGHT,
    title="A language model beside the driver",
    unit="token/s",
    target_s=90,
    draw=_draw_tokens,
    small=_draw_tokens,
    prompt=lambda p: (
        f"A language model of {p.billions:g} billion parameters with weights of {p.bits} bits answers one driver at a"
        f" time on a chip with {p.bandwidth} GB/s. Its KV cache holds {p.cache_mb} MB at that moment. How many tokens/s"
        " can it make at most?"
    ),
    derive=lambda p: Derivation(
        value=1 / _token_s(p),
        formula="bandwidth / (weights + KV cache): every token reads both once",
        substitution=f"{p.bandwidth} × 1e9 / ({p.billions} × 1e9 × {p.bits} / 8 + {p.cache_mb} × 1e6)",
        source="Pope et al., 2022, arXiv:2211.05102, section 2",
    ),
    count=_count_tokens,
    slips=(
        Slip("byte-per-weight", lambda p: p.bandwidth * GB / (2 * p.billions * billion + p.cache_mb * MB))
        | "You read two bytes per weight, as in FP16. These weights are narrower.",
        Slip("no-cache", lambda p: p.bandwidth * GB / (p.billions * billion * p.bits / BITS_PER_BYTE))
        | "You left out the KV cache. Every token reads it, too.",
        Slip("bits-as-bytes", lambda p: p.bandwidth * GB / (p.billions * billion * p.bits + p.cache_mb * MB))
        | "You took bits for bytes.",
        Slip("cache-only", lambda p: p.bandwidth * GB / (p.cache_mb * MB))
        | "You left out the weights. With one driver, no other device shares their reading.",
    ),
)

DRILLS = (RIDGE, FLOOR, PERIOD, SHARED, TOKENS)
