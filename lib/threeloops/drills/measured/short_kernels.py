"""A drill on kernels that are too short to come near their roof."""

import functools
import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import tera
from threeloops.drills.measured.counted import walked_product
from threeloops.drills.measured.products import SOURCE_ROOFLINE, call_bound, shape, times
from threeloops.drills.measured.rows import REPLAYED, TimedCall, chosen, took
from threeloops.facts.kernel_times import MATMUL
from threeloops.units import fmt_si, us

# --- an estimate for a short kernel ---------------------------------------------------------------

SHORT = (1 * us, 12 * us)  # roofs that a fixed time of some microseconds still shows beside


@functools.cache
def _short_calls() -> tuple[TimedCall, ...]:
    def asked(call: TimedCall) -> bool:
        roof = call_bound(call).lower_bound_s
        return SHORT[0] < roof < SHORT[1] and call.seconds > roof + 1.1 * call.shortest

    return chosen(MATMUL, "bf16", where=asked)


def _draw_short(rng: random.Random) -> Draw:
    call = rng.choice(_short_calls())
    p = drawn(
        **call.sizes,
        format="bf16",
        device=call.device,
        engine=call.engine,
        seconds=call.seconds,
        peak=call.peak,
        memory=call.rate,
        shortest=call.shortest,
        row=call.source,
    )
    return p


def _roof(p: Draw) -> float:
    return times(p, peak=p.peak).lower_bound_s


def _derive_short(p: Draw) -> Derivation:
    arithmetic = f"2 × {p.m} × {p.n} × {p.k} / {tera(p.peak)}"
    moved = f"2 × ({p.m} × {p.k} + {p.k} × {p.n} + {p.m} × {p.n}) / {tera(p.memory)}"
    return Derivation(
        value=p.shortest / (p.seconds - _roof(p)),
        formula="shortest kernel / (measured time − roof), the roof being the longer of arithmetic and bytes",
        substitution=f"{p.shortest!r} / ({p.seconds!r} − max({arithmetic}, {moved}))",
        source=f"{SOURCE_ROOFLINE}; {p.row}",
    )


def _count_short(p: Draw) -> float:
    operations, moved = walked_product(m=p.m, n=p.n, k=p.k, operand_bytes=2)
    missed = float(p.seconds) - sorted((operations / p.peak, moved / p.memory))[-1]
    return float(p.shortest / missed)


SHORTEST = Drill(
    key="measured-short-kernel",
    taught=Taught("inner", "Overheads"),
    title="What start-up explains of a short kernel",
    unit="",
    target_s=120,
    draw=_draw_short,
    small=lambda rng: drawn(
        m=rng.randrange(3, 7),
        n=rng.randrange(6, 12),
        k=rng.randrange(6, 12),
        format="bf16",
        seconds=rng.randrange(41, 99) / 10,
        peak=rng.randrange(400, 900),
        memory=rng.randrange(200, 500),
        shortest=rng.randrange(5, 15) / 10,
        row="drawn in 2026",
    ),
    prompt=lambda p: (
        f"{p.engine} multiplied {shape(p)} in BF16 on an {p.device} in {took(p.seconds)} ({REPLAYED}). Hardly any"
        f" matmul of the same table, however small, took less than {took(p.shortest)}. The card's dense peak in BF16"
        f" is {fmt_si(p.peak, 'FLOP/s')}, its memory bandwidth {fmt_si(p.memory, 'B/s')}; each operand moves once."
        " Suppose that every kernel pays that shortest time on top of its roof. What share of the time by which this"
        " matmul misses its roof does that explain?"
    ),
    derive=_derive_short,
    count=_count_short,
    slips=(
        Slip("of-the-whole-time", lambda p: p.shortest / p.seconds)
        | "That is the shortest time over the whole time. The roof's part of it is not missed.",
        Slip("of-the-roof", lambda p: p.shortest / _roof(p))
        | "You divided by the roof. The question is about the time beyond it.",
        Slip("roof-reached", lambda p: _roof(p) / p.seconds) | "That is the share of its roof that the matmul reached.",
        Slip("roof-and-start", lambda p: (_roof(p) + p.shortest) / p.seconds)
        | "That is how much of the whole time roof and start explain together.",
        Slip("missed-share", lambda p: (p.seconds - _roof(p)) / p.seconds)
        | "That is how much of its time lies beyond the roof. What explains it?",
    ),
)

DRILLS = (SHORTEST,)
