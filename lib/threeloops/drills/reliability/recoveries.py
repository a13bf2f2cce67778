"""Drills on recoveries: from memory or from disk, and what all of them cost in dollars."""

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.training_loop.run import checkpoint_levels, cost, reliability
from threeloops.units import day, hour, minute

TAUGHT = Taught("training", "Failure as routine")

SOURCE_DALY = (
    "Daly, Future Generation Computer Systems 22(3), 2006, doi:10.1016/j.future.2004.11.016, section 2 (first-order"
    " model)"
)
SOURCE_GEMINI = "Wang et al., GEMINI, SOSP 2023, doi:10.1145/3600006.3613145"

# --- saves in memory, saves on disk --------------------------------------------------------------


def _intact(p: Draw) -> float:
    """The share of failures that leave the copies in memory intact."""
    return float(p.percent / 100)


def _levels_lost(p: Draw, share: float) -> float:
    levels = [
        checkpoint_levels.Level(interval_s=p.memory_s, stall_s=0, restart_s=p.memory_restart_s, share=share),
        checkpoint_levels.Level(interval_s=p.disk_s, stall_s=0, restart_s=p.disk_restart_s, share=1 - share),
    ]
    return checkpoint_levels.lost_per_failure_with_levels_s(levels, detect_s=p.detect_s)


def _count_levels(p: Draw) -> float:
    """A hundred failures, each in every second of its interval in turn."""
    lost = 0.0
    for number in range(100):
        interval, restart = (p.memory_s, p.memory_restart_s) if number < p.percent else (p.disk_s, p.disk_restart_s)
        lost += sum(second + 0.5 + restart + p.detect_s for second in range(interval)) / interval
    return lost / 100


LEVELS = Drill(
    key="failure-two-levels",
    taught=TAUGHT,
    title="Saves in memory and saves on disk",
    unit="s",
    target_s=150,
    apart=1.06,
    draw=lambda rng: drawn(
        percent=rng.randrange(60, 95),
        memory_s=rng.randrange(1, 9) * minute,
        memory_restart_s=rng.randrange(1, 5) * minute,
        disk_s=rng.randrange(40, 240, 5) * minute,
        disk_restart_s=rng.randrange(6, 25) * minute,
        detect_s=rng.randrange(1, 6) * minute,
    ),
    small=lambda rng: drawn(
        percent=rng.choice((60, 70, 75)),
        memory_s=rng.randrange(3, 9),
        memory_restart_s=rng.randrange(2, 6),
        disk_s=rng.randrange(30, 70),
        disk_restart_s=rng.randrange(8, 20),
        detect_s=rng.randrange(2, 7),
    ),
    prompt=lambda p: (
        f"A run copies its state to the memory of other nodes every {p.memory_s / minute:.0f} min and to disk every"
        f" {p.disk_s / minute:.0f} min. A failure is noticed after {p.detect_s / minute:.0f} min. {p.percent} % of"
        " failures leave the copies in memory intact: the run then works again after another"
        f" {p.memory_restart_s / minute:.0f} min. Otherwise it needs the disk, and {p.disk_restart_s / minute:.0f} min."
        " How much time does a failure cost on average, lost work included?"
    ),
    derive=lambda p: Derivation(
        value=_levels_lost(p, _intact(p)),
        formula=(
            "detection + share × (memory's interval / 2 + its restart) + (1 − share) × (disk's interval / 2 + its"
            " restart)"
        ),
        substitution=(
            f"{p.detect_s} + {p.percent} / 100 × ({p.memory_s} / 2 + {p.memory_restart_s}) + (1 − {p.percent} / 100) ×"
            f" ({p.disk_s} / 2 + {p.disk_restart_s})"
        ),
        source=SOURCE_GEMINI,
    ),
    count=_count_levels,
    prerequisites=("failure-lost-time",),
    slips=(
        Slip("disk-only", lambda p: _levels_lost(p, 0.0))
        | "You read everything from disk. What are the copies in memory for?",
        Slip("memory-only", lambda p: _levels_lost(p, 1.0))
        | "You trusted the memory with every failure. Some take it along.",
        Slip("shares-swapped", lambda p: _levels_lost(p, 1 - _intact(p)))
        | "Which of the two kinds of failure is the frequent one?",
        Slip(
            "whole-intervals",
            lambda p: _levels_lost(p, _intact(p)) + _intact(p) * p.memory_s / 2 + (1 - _intact(p)) * p.disk_s / 2,
        )
        | "You lost whole intervals. A failure comes half-way on average.",
    ),
    function=AsFunction(
        takes=("percent", "memory_s", "memory_restart_s", "disk_s", "disk_restart_s", "detect_s"),
        limit={"percent": 100},
        limit_case="copies in memory that survive every failure",
    ),
)

# --- in dollars ----------------------------------------------------------------------------------


def _failures(p: Draw) -> float:
    return float(p.days * day / p.mtbf_s)


def _lost(p: Draw) -> float:
    return reliability.lost_per_failure_s(interval_s=p.interval_s, detect_s=0, restart_s=p.recovery_s)


def _dollars(p: Draw, lost_s: float) -> float:
    """What all GPUs cost in the time that the run loses, so much to each failure."""
    return cost.dollars(gpu_s=p.gpus * _failures(p) * lost_s, dollars_per_gpu_hour=p.dollars)


def _count_dollars(p: Draw) -> float:
    """The meter of every GPU, minute by minute, failure by failure; failures find the interval at each of its minutes
    alike.
    """
    moments = [at + 0.5 for at in range(p.interval_s // minute)]
    lost_minutes = sum(sum(1 for _ in range(int(at))) + 0.5 for at in moments) / len(moments) + p.recovery_s // minute
    lost = 0.0
    for at_hour in range(1, p.days * 24 + 1):
        if at_hour * hour % p.mtbf_s == 0:
            lost += sum(lost_minutes * p.dollars / 60 for _ in range(p.gpus))
    return lost


DOLLARS = Drill(
    key="failure-dollars",
    taught=TAUGHT,
    title="Failures on the invoice",
    unit="dollar",
    target_s=150,
    apart=1.06,
    draw=lambda rng: drawn(
        gpus=rng.randrange(256, 5000, 64),
        dollars=rng.choice((1.9, 2.3, 2.6, 3.1)),
        days=rng.randrange(11, 60),
        mtbf_s=rng.randrange(3, 30) * hour,
        interval_s=rng.randrange(20, 120, 5) * minute,
        recovery_s=rng.randrange(10, 45) * minute,
    ),
    small=lambda rng: drawn(
        gpus=rng.randrange(5, 12),
        dollars=rng.choice((1.9, 2.3, 3.1)),
        days=rng.choice((2, 3)),
        mtbf_s=rng.choice((4, 6, 8)) * hour,
        interval_s=rng.choice((20, 40)) * minute,
        recovery_s=rng.choice((12, 25, 35)) * minute,
    ),
    prompt=lambda p: (
        f"A run on {p.gpus} GPUs, at {p.dollars} dollars per GPU-hour, lasts {p.days} days and fails every"
        f" {p.mtbf_s / hour:.3g} hours on average. It saves every {p.interval_s // minute} min (the save itself is"
        f" hidden), and after a failure {p.recovery_s // minute} min go by before it works again from the last save."
        " How many dollars are paid for work done twice and for waiting?"
    ),
    derive=lambda p: Derivation(
        value=_dollars(p, _lost(p)),
        formula="GPUs × price per second × days / time between failures × (interval / 2 + recovery)",
        substitution=(
            f"{p.gpus} × {p.dollars} / {hour} × {p.days} × {day} / {p.mtbf_s} × ({p.interval_s} / 2 + {p.recovery_s})"
        ),
        source=SOURCE_DALY,
    ),
    count=_count_dollars,
    prerequisites=("failure-lost-time",),
    slips=(
        Slip("one-failure", lambda p: _dollars(p, _lost(p)) / _failures(p))
        | "That is one failure. How many are there in the run?",
        Slip("one-gpu", lambda p: _dollars(p, _lost(p)) / p.gpus)
        | "You paid for the GPU that failed. All the others wait with it.",
        Slip("whole-interval", lambda p: _dollars(p, p.interval_s + p.recovery_s))
        | "You repeated whole intervals. A failure comes half-way on average.",
        Slip("work-only", lambda p: _dollars(p, p.interval_s / 2))
        | "You paid for repeated work. GPUs that wait are on the invoice, too.",
        Slip("waiting-only", lambda p: _dollars(p, p.recovery_s))
        | "You paid for waiting. Some work has to be done again.",
    ),
)

DRILLS = (LEVELS, DOLLARS)
