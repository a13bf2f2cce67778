"""A case of several networks on one chip: three that share a Jetson AGX Orin. Their figures are invented; the chip's
are not.
"""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Draw, changed, drawn
from threeloops.room.kinds.cases.case import Case, design, requirements
from threeloops.room.kinds.chains.chain import Step
from threeloops.room.kinds.chains.change import Best, Change, shown, value_of
from threeloops.units import GB, MB, TFLOP, billion, fmt_percent

ORIN = "jetson-agx-orin-64gb"


def _draw_three(rng: random.Random) -> Draw:
    orin = catalogued.part(ORIN)
    billions, drafted = rng.choice((1.1, 1.4, 1.7, 2.1)), rng.choice((8, 16, 24, 32))
    return drawn(
        peak=orin.peak_flops_per_s("fp16", engine="gpu", power_mode="maxn") / TFLOP,
        bandwidth=orin["memory_bytes_per_s"] / GB,
        sms=round(orin["sms"]),
        camera_gops=rng.randrange(240, 560),
        camera_mb=rng.randrange(250, 900),
        fewer=rng.choice((0.6, 0.7, 0.8)),
        billions=billions,
        drafted=drafted,
        words_gops=round(2 * billions * drafted),
        words_mb=round(billions * billion / MB),  # in 8 bits, a byte a weight
        kernel_us=rng.randrange(420, 1900, 20),
        busy=rng.choice((0.55, 0.65, 0.75, 0.85)),
        rate=rng.choice((20, 30)),
        chains=rng.choice((5, 6, 7)),
        minutes=rng.choice((30, 45, 90)),
        per_ten_thousand=rng.choice((3, 5, 12)),
    )


def _reader(p: Draw) -> Draw:
    return changed(p, gops=p.words_gops, megabytes=p.words_mb)


def _own(p: Draw) -> str:
    return fmt_percent(value_of("soc-own-sms", _reader(p)))


def _narrow(p: Draw) -> Draw:
    return changed(p, words_mb=p.words_mb // 2)


THREE = Case(
    key="case-three-on-an-orin",
    title="Three networks share an Orin",
    loop="driving",
    section="Tails and schedules",
    draw=_draw_three,
    requirements=requirements(
        lambda p: (
            "A camera network, a driver monitor and a small language model share one Orin. Since the third came, frames"
            " are late now and then. What do we do?"
        ),
        (
            "which of the three has a deadline, from what to what, and what a late result costs",
            lambda p: f"the camera network, every frame, {p.rate} a second; the others may wait",
        ),
        (
            "whether they are streams of one process or processes, and with which priorities",
            lambda p: "one process, a stream each, all of one priority",
        ),
        (
            "how long the longest kernel of each is, and how much of the GPU it fills",
            lambda p: f"the language model's: {p.kernel_us} µs, all SMs, {fmt_percent(p.busy)} of the time",
        ),
        (
            "what each computes and moves: which resource they fight over",
            lambda p: (
                f"the camera network {p.camera_gops} GFLOP and {p.camera_mb} MB a frame; the language model"
                f" {p.billions} billion weights in 8 bits, {p.drafted} drafted tokens a step"
            ),
        ),
        (
            "what the tail is, measured with all three running and the chip warm",
            lambda p: f"{p.per_ten_thousand} of ten thousand frames are late; none without the language model",
        ),
        (
            "what this chip and its software offer to divide it",
            lambda p: "streams with priorities, green contexts, time slices between processes; no MIG on this GPU",
        ),
    ),
    estimates=(
        Step(drill="deadlines-launch-wait", numbers=lambda p: p),
        Step(drill="soc-side-by-side", numbers=lambda p: p),
        Step(drill="soc-own-sms", numbers=_reader),
    ),
    design=design(
        lambda p: "Now the design: who runs where and when on this GPU, and what do you promise to the camera network?",
        (
            "the wait for SMs apart from the wait for bytes, each with a measurement that shows it alone",
            "a priority for the camera's stream, and what it leaves: a kernel that has begun, and the memory",
            "SMs of its own by a green context: how many, and that bandwidth and errors stay shared",
            "turns against sharing: the sum of both maxima against the larger resource, and whose tail each helps",
            "what the language model gives up: shorter kernels, fewer bytes a token, tokens only in the gap of a frame",
            "a promise from the longest wait that is left, a watchdog, and what happens to a late frame",
        ),
        lambda p: (
            f"A launch waits {shown('deadlines-launch-wait', p)} on average behind the language model's kernels, and up"
            f" to {p.kernel_us} µs. A priority orders what waits and stops nothing that runs, so a green context keeps"
            f" SMs for the camera network: the language model loses no time with {_own(p)} of them, rounded up to whole"
            " ones, as long as so few can ask for all bytes. The bytes stay shared: side by side the two need"
            f" {shown('soc-side-by-side', p)} at least, so tokens are written in the gap that a frame leaves, and the"
            " deadline is promised from the camera network's slowest frame beside a reader at work. What would"
            " change the design: the camera network's p99 with the language model reading, on SMs of their own."
        ),
    ),
    trade_off=Best(
        drill="soc-side-by-side",
        now=lambda p: p,
        text=lambda p: (
            f"The GPU computes {p.peak:g} TFLOP/s, the memory moves {p.bandwidth:g} GB/s. Per frame the camera network"
            f" does {p.camera_gops} GFLOP and moves {p.camera_mb} MB, a step of the language model {p.words_gops} GFLOP"
            f" and {p.words_mb} MB, side by side, perfectly overlapped. Which single change has both done soonest?"
        ),
        changes=(
            Change(
                key="narrow",
                text=lambda p: "the language model's weights in half the bits, and so half its bytes",
                numbers=_narrow,
            ),
            Change(
                key="pixels",
                text=lambda p: f"{p.fewer:g} of the pixels for the camera network, its work and bytes in proportion",
                numbers=lambda p: changed(p, camera_gops=p.camera_gops * p.fewer, camera_mb=p.camera_mb * p.fewer),
            ),
            Change(
                key="drafted",
                text=lambda p: "half as many drafted tokens a step, and so half the language model's operations",
                numbers=lambda p: changed(p, words_gops=p.words_gops / 2),
            ),
        ),
    ),
    price=(
        "fewer pixels are metres of sight: which distance does the deadline come from",
        "fewer bits cost the language model's accuracy, so try them on what this car asks of it",
        "the least time of both is no promise to one of them: look at the camera network's tail again",
    ),
    follow_ups=(
        Step(drill="soc-side-by-side", numbers=_narrow),
        Step(drill="deadlines-misses", numbers=lambda p: p),
    ),
)
