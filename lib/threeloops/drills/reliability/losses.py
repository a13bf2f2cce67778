"""Drills on what failures cost: work done twice, and goodput."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, changed, drawn
from threeloops.training_loop.run import reliability
from threeloops.units import minute

TAUGHT = Taught("training", "Failure as routine")

SOURCE_DALY = (
    "Daly, Future Generation Computer Systems 22(3), 2006, doi:10.1016/j.future.2004.11.016, section 2 (first-order"
    " model)"
)

# --- one failure ---------------------------------------------------------------------------------


def _lost(p: Draw) -> float:
    return reliability.lost_per_failure_s(interval_s=p.steps * p.step_s, detect_s=p.detect_s, restart_s=p.restart_s)


def _draw_lost(rng: random.Random) -> Draw:
    return drawn(
        steps=rng.randrange(60, 500, 10),
        step_s=rng.randrange(21, 99) / 10,
        detect_s=rng.randrange(120, 900, 10),
        restart_s=rng.randrange(150, 800, 10),
    )


def _count_lost(p: Draw) -> float:
    """A failure in the middle of every step of the interval, one after another."""
    lost = 0.0
    for failed in range(p.steps):
        lost += sum(p.step_s for _ in range(failed)) + p.step_s / 2  # steps since the save, and the one under way
        lost += p.detect_s + p.restart_s
    return float(lost / p.steps)


LOST = Drill(
    key="failure-lost-time",
    taught=TAUGHT,
    title="What one failure costs",
    unit="s",
    target_s=75,
    apart=1.06,
    draw=_draw_lost,
    small=lambda rng: changed(_draw_lost(rng), steps=rng.randrange(7, 40)),
    prompt=lambda p: (
        f"A run saves its state after every {p.steps} steps of {p.step_s} s. When a node is lost, other ranks hang in a"
        f" collective for {p.detect_s} s until it times out; then it takes {p.restart_s} s until steps run again from"
        " the last save. How much time does a failure cost on average, if it may come at any moment? (Saving itself"
        " takes no time here.)"
    ),
    derive=lambda p: Derivation(
        value=_lost(p),
        formula="steps between saves × time of a step / 2 + detection + restart",
        substitution=f"{p.steps} × {p.step_s} / 2 + {p.detect_s} + {p.restart_s}",
        source=SOURCE_DALY,
    ),
    count=_count_lost,
    slips=(
        Slip("whole-interval", lambda p: _lost(p) + p.steps * p.step_s / 2)
        | "You lost a whole interval every time. A failure seldom waits for the next save.",
        Slip("work-only", lambda p: p.steps * p.step_s / 2)
        | "You counted the work that is done again. Nothing runs while a failure is noticed and mended.",
        Slip("no-detection", lambda p: p.steps * p.step_s / 2 + p.restart_s)
        | "You noticed the failure at once. What do the other ranks do meanwhile?",
        Slip("no-rollback", lambda p: p.detect_s + p.restart_s)
        | "You went on where the run broke off. Where does it begin again?",
    ),
)

# --- goodput -------------------------------------------------------------------------------------


def _kept(p: Draw) -> float:
    return reliability.first_order_goodput(
        interval_s=p.interval_s, save_s=p.save_s, mtbf_s=p.mtbf_s, detect_s=0, restart_s=p.recovery_s
    )


def _goodput(p: Draw, *, lost_periods: float, recovery_s: float, save_s: float) -> float:
    """What is left between two failures when each destroys that many periods, times what is left of each period."""
    period = p.interval_s + save_s
    return float((p.mtbf_s - lost_periods * period - recovery_s) / p.mtbf_s * p.interval_s / period)


def _small_goodput(rng: random.Random) -> Draw:
    interval, save = rng.randrange(20, 60), rng.randrange(4, 15)
    recovery = rng.randrange(8, 40)
    # Whole periods between two failures, then half of one on average, then the recovery.
    return drawn(
        interval_s=interval,
        save_s=save,
        recovery_s=recovery,
        periods=(periods := rng.randrange(2, 6)),
        mtbf_s=(periods + 0.5) * (interval + save) + recovery,
    )


def _derive_goodput(p: Draw) -> Derivation:
    period = f"({p.interval_s} + {p.save_s})"
    return Derivation(
        value=_kept(p),
        formula=(
            "(time between failures − period / 2 − recovery) / time between failures × interval / period, period ="
            " interval + save"
        ),
        substitution=f"({p.mtbf_s} − {period} / 2 − {p.recovery_s}) / {p.mtbf_s} × {p.interval_s} / {period}",
        source=SOURCE_DALY,
    )


def _count_goodput(p: Draw) -> float:
    """A failure in every second of a period in turn; between two of them, second by second, only finished and saved
    intervals count.
    """
    kept = wall = 0.0
    period = p.interval_s + p.save_s
    for second in range(period):
        up = p.periods * period + second  # and half a second, which finishes nothing
        saved = sum(1 for clock in range(1, up + 1) if clock % period == 0)
        kept += saved * p.interval_s
        wall += up + 0.5 + p.recovery_s
    return kept / wall


GOODPUT = Drill(
    key="failure-goodput",
    taught=TAUGHT,
    title="The share of time that is kept",
    unit="",
    target_s=180,
    apart=1.06,
    wanted=lambda p: _goodput(p, lost_periods=1, recovery_s=p.recovery_s, save_s=p.save_s) > 0.2,
    draw=lambda rng: drawn(
        mtbf_s=rng.randrange(100, 400, 10) * minute,
        interval_s=rng.randrange(15, 80) * minute,
        save_s=rng.randrange(1, 12) * minute,
        recovery_s=rng.randrange(8, 70) * minute,
    ),
    small=_small_goodput,
    prompt=lambda p: (
        f"A run trains for {p.interval_s / minute:.0f} min, then stands still for {p.save_s / minute:.0f} min while it"
        f" is saved, and so on. From one failure to the next it is {p.mtbf_s / minute:.0f} min on average, of which the"
        f" first {p.recovery_s / minute:.0f} min go by before the run works again from its last save. On average a"
        " failure destroys half of such a period of training and saving. What is the run's goodput, the share of the"
        " time spent on training that is kept?"
    ),
    derive=_derive_goodput,
    count=_count_goodput,
    prerequisites=("failure-lost-time",),
    slips=(
        Slip("whole-period", lambda p: _goodput(p, lost_periods=1, recovery_s=p.recovery_s, save_s=p.save_s))
        | "You lost a whole period each time. A failure finds it half done on average.",
        Slip("no-recovery", lambda p: _goodput(p, lost_periods=0.5, recovery_s=0, save_s=p.save_s))
        | "You let the run work from the moment it failed. When does it work again?",
        Slip("saves-are-free", lambda p: _goodput(p, lost_periods=0.5, recovery_s=p.recovery_s, save_s=0))
        | "You forgot that training stands still while it is saved.",
        Slip("no-rollback", lambda p: _goodput(p, lost_periods=0, recovery_s=p.recovery_s, save_s=p.save_s))
        | "You kept everything up to the failure. Where does the run begin again?",
    ),
)

DRILLS = (LOST, GOODPUT)
