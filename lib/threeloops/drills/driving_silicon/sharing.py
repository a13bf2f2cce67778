"""Drills on networks that share a GPU: what running side by side saves, and how few SMs a network can do with."""

import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.driving import shared_chip, soc_fit
from threeloops.driving.soc_fit import Stage
from threeloops.simulate.driving import chip_sharing
from threeloops.simulate.driving.chip_sharing import Kernel, Network
from threeloops.units import GB, GFLOP, MB, TFLOP, ms

TAUGHT = Taught("driving", "Tails and schedules")
ROOFLINE = "Williams, Waterman, Patterson, CACM 52(4), 2009, doi:10.1145/1498765.1498785, for each resource of its own"
SMS = 4  # of a count
A_BLOCK = 60  # times as many blocks as the longest row of SMs divides without rest

# --- side by side --------------------------------------------------------------------------------


def _draw_side(rng: random.Random) -> Draw:
    """One network that computes, one that reads; together the one resource or the other is the fuller one."""
    peak, bandwidth = rng.randrange(60, 110), rng.randrange(150, 280)
    camera_ms, words_ms = rng.uniform(2.0, 5.0), rng.uniform(2.0, 5.0)
    return drawn(
        peak=peak,
        bandwidth=bandwidth,
        camera_gops=round(camera_ms * ms * peak * TFLOP / GFLOP),
        camera_mb=round(camera_ms * rng.uniform(0.25, 0.6) * ms * bandwidth * GB / MB),
        words_gops=round(words_ms * rng.uniform(0.1, 0.5) * ms * peak * TFLOP / GFLOP),
        words_mb=round(words_ms * ms * bandwidth * GB / MB),
    )


def _small_side(rng: random.Random) -> Draw:
    """Bytes are the fuller resource: in slices of a millisecond on four SMs, and the reader is the last one."""
    camera, words = 6 * rng.randrange(2, 5), 10 * rng.randrange(12, 20)
    return drawn(
        peak=4, bandwidth=10, camera_gops=5 * camera, camera_mb=10 * camera, words_gops=words, words_mb=50 * words
    )


def _stages(p: Draw) -> list[Stage]:
    return [
        Stage(name=name, engine="gpu", ops=gops * GFLOP, moved_bytes=megabytes * MB, peak_ops_per_s=p.peak * TFLOP)
        for name, gops, megabytes in (("camera", p.camera_gops, p.camera_mb), ("words", p.words_gops, p.words_mb))
    ]


def _alone_s(p: Draw) -> list[float]:
    return [soc_fit.frame_latency_s([one], memory_bytes_per_s=p.bandwidth * GB) for one in _stages(p)]


def _count_side(p: Draw) -> float:
    """Three SMs for the camera's blocks, one for the reader's, a thousandth of a millisecond a slice and a block of a
    GFLOP: until both are done.
    """
    blocks = {
        "camera": Kernel(blocks=p.camera_gops // 5, work_slices=5, moved_bytes=10.0),
        "words": Kernel(blocks=p.words_gops, work_slices=1, moved_bytes=50.0),
    }
    networks = [Network(name=name, kernels=(kernel,)) for name, kernel in blocks.items()]
    ends = chip_sharing.run(
        networks, sms=SMS, rule="own", own={"camera": 3, "words": 1}, bus_bytes_per_slice=float(p.bandwidth)
    )
    return max(one.ended for one in ends.values()) * ms


SIDE = Drill(
    key="soc-side-by-side",
    taught=TAUGHT,
    title="Two networks on one GPU at once",
    unit="s",
    target_s=110,
    draw=_draw_side,
    small=_small_side,
    prompt=lambda p: (
        f"A GPU computes {p.peak} TFLOP/s, its memory moves {p.bandwidth} GB/s. A camera network does"
        f" {p.camera_gops} GFLOP and moves {p.camera_mb} MB; a language model does {p.words_gops} GFLOP and moves"
        f" {p.words_mb} MB. They run side by side, and the arithmetic of each hides behind the other's bytes. What is"
        " the least time until both are done?"
    ),
    derive=lambda p: Derivation(
        value=shared_chip.side_by_side_s(_stages(p), memory_bytes_per_s=p.bandwidth * GB),
        formula="max(all operations / peak, all bytes / bandwidth)",
        substitution=(
            f"max(({p.camera_gops} + {p.words_gops}) × 1e9 / ({p.peak} × 1e12),"
            f" ({p.camera_mb} + {p.words_mb}) × 1e6 / ({p.bandwidth} × 1e9))"
        ),
        source=ROOFLINE,
    ),
    count=_count_side,
    slips=(
        Slip("one-after-the-other", lambda p: sum(_alone_s(p)))
        | "You ran one after the other. Here one computes while the other waits for bytes.",
        Slip("slower-alone", lambda p: max(_alone_s(p)))
        | "You took the slower one as if it had the GPU to itself. The other one uses both resources, too.",
        Slip(
            "emptier-resource",
            lambda p: min(
                sum(one.ops for one in _stages(p)) / (p.peak * TFLOP),
                sum(one.moved_bytes for one in _stages(p)) / (p.bandwidth * GB),
            ),
        )
        | "That is the resource that is done first. The other one is still at work.",
        Slip(
            "no-overlap",
            lambda p: (
                sum(one.ops for one in _stages(p)) / (p.peak * TFLOP)
                + sum(one.moved_bytes for one in _stages(p)) / (p.bandwidth * GB)
            ),
        )
        | "You computed first and moved bytes afterwards. Both happen at the same time.",
    ),
    function=AsFunction(
        takes=("camera_gops", "camera_mb", "words_gops", "words_mb", "peak", "bandwidth"),
        limit={"camera_mb": 1, "words_mb": 1},
        limit_case="two networks that hardly touch the memory",
    ),
)

# --- SMs of its own ------------------------------------------------------------------------------


def _draw_own(rng: random.Random) -> Draw:
    peak, bandwidth = rng.randrange(60, 110), rng.randrange(150, 280)
    megabytes = rng.randrange(800, 4000, 50)
    share = rng.uniform(0.08, 0.45)
    return drawn(
        peak=peak,
        bandwidth=bandwidth,
        megabytes=megabytes,
        gops=round(share * megabytes * MB / (bandwidth * GB) * peak * TFLOP / GFLOP),
        sms=rng.choice((16, 20, 24)),
    )


def _small_own(rng: random.Random) -> Draw:
    """Of six SMs so many as are a whole number: a block of a GFLOP per SM needed and slice."""
    sms, few = 6, rng.randrange(1, 5)
    bandwidth, reads = 10, 10 * rng.randrange(2, 6)
    blocks = A_BLOCK * rng.randrange(1, 3)
    return drawn(
        peak=sms, bandwidth=bandwidth, megabytes=blocks * reads, gops=blocks * few * reads // bandwidth, sms=sms
    )


def _one(p: Draw) -> Stage:
    return Stage(
        name="words", engine="gpu", ops=p.gops * GFLOP, moved_bytes=p.megabytes * MB, peak_ops_per_s=p.peak * TFLOP
    )


def _own_share(p: Draw) -> float:
    needed = shared_chip.sms_for_memory_bound(_one(p), sms=p.sms, memory_bytes_per_s=p.bandwidth * GB)
    return float(needed / p.sms)


def _count_own(p: Draw) -> float:
    """Give it one SM more each time, until it ends no later than with all."""
    blocks = A_BLOCK
    kernel = Kernel(blocks=blocks, work_slices=p.gops // blocks, moved_bytes=p.megabytes / blocks)
    ends = [
        chip_sharing.run(
            [Network(name="words", kernels=(kernel,))],
            sms=sms,
            rule="streams",
            bus_bytes_per_slice=float(p.bandwidth),
        )["words"].ended
        for sms in range(1, p.sms + 1)
    ]
    return float((1 + next(place for place, end in enumerate(ends) if end <= ends[-1])) / p.sms)


OWN = Drill(
    key="soc-own-sms",
    taught=TAUGHT,
    title="How few SMs a reader can do with",
    unit="",
    target_s=110,
    draw=_draw_own,
    small=_small_own,
    prompt=lambda p: (
        f"A GPU of {p.sms} SMs computes {p.peak} TFLOP/s, and its memory moves {p.bandwidth} GB/s. A language model"
        f" does {p.gops} GFLOP a step and reads {p.megabytes:,} MB, so it waits for memory. A green context shall give"
        " it SMs of its own. Which share of the SMs does it need at least to lose no time, if so few can still ask for"
        " all of the bandwidth?"
    ),
    derive=lambda p: Derivation(
        value=_own_share(p),
        formula="(operations / peak) / (bytes / bandwidth)",
        substitution=f"({p.gops} × 1e9 / ({p.peak} × 1e12)) / ({p.megabytes} × 1e6 / ({p.bandwidth} × 1e9))",
        source=ROOFLINE,
    ),
    count=_count_own,
    slips=(
        Slip("the-rest", lambda p: 1 - _own_share(p)) | "That is what is left for the other network.",
        Slip("both-times", lambda p: _own_share(p) / (1 + _own_share(p)))
        | "You divided by the sum of both times. Arithmetic hides behind the bytes, whose time is the whole.",
        Slip("one-sm", lambda p: _own_share(p) * p.sms) | "That is the number of SMs. Asked is their share.",
        Slip("half-operations", lambda p: _own_share(p) / 2)
        | "You counted a multiply-add as one operation. The rate counts it as two.",
    ),
    function=AsFunction(
        takes=("gops", "megabytes", "peak", "bandwidth", "sms"),
        limit={"megabytes": 1},
        limit_case="a network that waits for arithmetic, and needs all SMs",
    ),
)

DRILLS = (SIDE, OWN)
