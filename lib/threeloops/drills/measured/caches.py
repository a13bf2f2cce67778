"""A drill on caches in two formats: what a third one would take."""

import functools
import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.measured.rows import REPLAYED, TimedCall, chosen, took
from threeloops.facts.kernel_times import DECODE
from threeloops.operations import two_timings
from threeloops.units import us

SOURCE_HOCKNEY = "Hockney, Parallel Computing 20(3), 1994, pp. 389-398"

# --- a cache that nobody has timed -----------------------------------------------------------------


@functools.cache
def _caches() -> tuple[tuple[TimedCall, TimedCall], ...]:
    """The same call with caches of 16 and of 8 bits, where the narrower one is clearly quicker."""
    narrow = {(call.part, tuple(call.sizes.values())): call for call in chosen(DECODE, "fp8", where=lambda call: True)}
    pairs = [
        (call, narrow[key])
        for call in chosen(DECODE, "bf16", where=lambda call: call.seconds > 15 * us)
        if (key := (call.part, tuple(call.sizes.values()))) in narrow
    ]
    return tuple((wide, thin) for wide, thin in pairs if 1.2 < wide.seconds / thin.seconds < 1.85)


def _draw_caches(rng: random.Random) -> Draw:
    wide, thin = rng.choice(_caches())
    return drawn(
        **wide.sizes,
        device=wide.device,
        engine=wide.engine,
        wide_s=wide.seconds,
        thin_s=thin.seconds,
        row=wide.source,
    )


def _small_caches(rng: random.Random) -> Draw:
    start, byte = rng.randrange(4, 30), rng.randrange(3, 9)
    size = 2 * rng.randrange(3, 12)  # bytes of a cache of 8 bits
    return drawn(
        batch=1,
        num_kv_heads=1,
        head_dim=1,
        tokens=size // 2,
        start=start,
        byte=byte,
        wide_s=start + byte * 2 * size,
        thin_s=start + byte * size,
        row="drawn in 2026",
    )


def _four_bits_s(p: Draw) -> float:
    narrow = 2 * p.batch * p.num_kv_heads * p.head_dim * p.tokens
    line = two_timings.line_through_timings(few_bytes=narrow, few_s=p.thin_s, many_bytes=2 * narrow, many_s=p.wide_s)
    return line.seconds(narrow / 2)


def _count_caches(p: Draw) -> float:
    """A clock that starts, and then goes on for each half byte that is read."""
    clock = float(p.start)
    for _ in range(2 * p.batch * p.num_kv_heads * p.head_dim * p.tokens):
        clock += p.byte / 2
    return clock


CACHES = Drill(
    key="measured-narrower-cache",
    taught=Taught("product", "KV cache"),
    title="Four bits, from sixteen and eight",
    unit="s",
    target_s=100,
    draw=_draw_caches,
    small=_small_caches,
    prompt=lambda p: (
        f"{p.engine} ran decode attention on an {p.device} for {p.batch} request{'s' if p.batch > 1 else ''} with"
        f" caches of {p.tokens:,} tokens ({p.num_kv_heads} KV head{'s' if p.num_kv_heads > 1 else ''}, {p.head_dim}"
        f" wide): in {took(p.wide_s)} with a cache of 16 bits an element, in {took(p.thin_s)} with one of 8 bits"
        f" ({REPLAYED}). Say that a call takes a fixed time and then reads the cache at a steady rate, the same for"
        " every format. How long would it take with 4 bits an element, scales neglected?"
    ),
    derive=lambda p: Derivation(
        value=_four_bits_s(p),
        formula="time at 8 bits − (time at 16 bits − time at 8 bits) / 2: half of the bytes that 8 bits saved",
        substitution=f"{p.thin_s!r} − ({p.wide_s!r} − {p.thin_s!r}) / 2",
        source=f"{SOURCE_HOCKNEY}; {p.row}",
    ),
    count=_count_caches,
    slips=(
        Slip("half-again", lambda p: p.thin_s / 2) | "You halved the whole time. Its fixed part stays.",
        Slip("same-ratio", lambda p: p.thin_s * p.thin_s / p.wide_s)
        | "You took the same factor once more. The fixed part weighs more in a shorter call.",
        Slip("same-step", lambda p: 2 * p.thin_s - p.wide_s)
        | "You took the same saving once more. From 8 to 4 bits fewer bytes are saved than from 16 to 8.",
        Slip("quarter", lambda p: p.wide_s / 4)
        | "You divided the time by as much as the bytes. Does all of the time belong to bytes?",
    ),
)

DRILLS = (CACHES,)
