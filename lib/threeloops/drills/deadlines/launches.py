"""A drill on networks that share a GPU: how long a launch waits behind another network's kernel."""

import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.driving import shared_chip
from threeloops.simulate.driving import chip_sharing
from threeloops.simulate.driving.chip_sharing import Kernel, Network
from threeloops.units import us

TAUGHT = Taught("driving", "Tails and schedules")
KLEINROCK = "Kleinrock, Queueing Systems, volume 1, 1975, section 5.2 (residual life)"


def _small_launch(rng: random.Random) -> Draw:
    """So that a kernel and the pause after it are whole slices."""
    return drawn(kernel_us=rng.randrange(12, 60, 12), busy=rng.choice((0.6, 0.75, 0.8)))


def _wait(p: Draw, *, busy: float | None = None) -> float:
    return shared_chip.mean_launch_wait_s(kernel_s=p.kernel_us * us, busy_share=p.busy if busy is None else busy)


def _count_launch(p: Draw) -> float:
    """Launch a block in every slice of a kernel and of the pause after it: one SM, a microsecond a slice. Who waits
    does so for half a slice less than one launched as the slice begins, on average.
    """
    load = Network(name="load", kernels=(Kernel(blocks=1, work_slices=p.kernel_us),))
    waited, slices = 0.0, round(p.kernel_us / p.busy)
    for at in range(slices):
        small = Network(name="small", kernels=(Kernel(blocks=1, work_slices=1),), launched=at)
        wait = chip_sharing.run([load, small], sms=1, rule="streams")["small"].began - at
        waited += max(0.0, wait - 0.5)
    return float(waited / slices * us)


LAUNCH = Drill(
    key="deadlines-launch-wait",
    taught=TAUGHT,
    title="Behind a kernel that fills the GPU",
    unit="s",
    target_s=75,
    draw=lambda rng: drawn(
        kernel_us=rng.randrange(300, 2400, 20), busy=rng.choice((0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9))
    ),
    small=_small_launch,
    prompt=lambda p: (
        f"A network's kernels take {p.kernel_us} µs each, fill the GPU, and keep it busy {100 * p.busy:g} % of the"
        " time. Another network launches a small kernel in a stream of equal priority, at a moment that has nothing to"
        " do with them. How long does that launch wait on average until it begins?"
    ),
    derive=lambda p: Derivation(
        value=_wait(p),
        formula="busy share × kernel / 2",
        substitution=f"{p.busy} × {p.kernel_us} × 1e-6 / 2",
        source=KLEINROCK,
    ),
    count=_count_launch,
    slips=(
        Slip("never-idle", lambda p: _wait(p, busy=1.0))
        | "You always met a kernel. In part of the launches the GPU is idle, and no kernel waits.",
        Slip("whole-kernel", lambda p: 2 * _wait(p))
        | "You always came as the kernel began. A launch comes at any moment of it.",
        Slip("longest", lambda p: p.kernel_us * us) | "That is the longest wait. Asked is the mean.",
        Slip("idle-share", lambda p: _wait(p, busy=1 - p.busy))
        | "You waited while the GPU was idle. A launch waits in the other part of the time.",
    ),
    function=AsFunction(takes=("kernel_us", "busy"), limit={"busy": 1.0}, limit_case="a GPU that is never idle"),
)

DRILLS = (LAUNCH,)
