"""Drills that hold several timed calls beside each other: four shapes, two formats, a layer and its product, a table
and what it had not seen.
"""

import functools
import random
from statistics import fmean

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import tera
from threeloops.drills.engine.searches import wanted
from threeloops.drills.measured.counted import walked_product
from threeloops.drills.measured.products import SOURCE_ROOFLINE, call_bound, shape
from threeloops.drills.measured.rows import REPLAYED, TimedCall, chosen, took
from threeloops.dtypes import bytes_per_element
from threeloops.facts.kernel_times import MATMUL
from threeloops.operations import roofline
from threeloops.operations.expected_times import kernel_work
from threeloops.units import fmt_si, us

# --- four shapes on one card -----------------------------------------------------------------------

LONG = 20 * us  # a roof beside which the start of a kernel is small


@functools.cache
def _long_calls() -> dict[tuple[str, str], tuple[TimedCall, ...]]:
    """By part and by what binds."""
    calls = chosen(MATMUL, "bf16", where=lambda call: call_bound(call).lower_bound_s > LONG)
    found: dict[tuple[str, str], list[TimedCall]] = {}
    for call in calls:
        found.setdefault((call.part, call_bound(call).bound), []).append(call)
    both = [part for part, bound in found if bound == "memory" and len(found[part, "memory"]) > 1]
    return {key: tuple(some) for key, some in found.items() if key[0] in both and len(some) > 1}


def _draw_four(rng: random.Random) -> Draw:
    grouped = _long_calls()
    part = rng.choice(sorted({part for part, _ in grouped}))

    def draw() -> list[TimedCall]:
        return [call for bound in ("compute", "memory") for call in rng.sample(grouped[part, bound], 2)]

    def fits(calls: list[TimedCall]) -> bool:
        """Else who looks at the seconds is right by luck."""
        worst, *_, best = sorted(calls, key=lambda call: call_bound(call).lower_bound_s / call.seconds)
        return max(calls, key=lambda call: call.seconds - call_bound(call).lower_bound_s) not in (worst, best)

    calls = wanted(draw, fits)
    rng.shuffle(calls)
    return drawn(
        calls=tuple((call.sizes["m"], call.sizes["n"], call.sizes["k"], call.seconds) for call in calls),
        device=calls[0].device,
        engine=calls[0].engine,
        peak=calls[0].peak,
        memory=calls[0].rate,
        row=calls[0].source,
    )


def _small_four(rng: random.Random) -> Draw:
    calls = tuple(
        (rng.randrange(1, 9), rng.randrange(4, 9), rng.randrange(4, 9), rng.randrange(21, 99) / 10) for _ in range(4)
    )
    return drawn(calls=calls, peak=rng.randrange(200, 500), memory=rng.randrange(100, 200), row="drawn in 2026")


def _fours(p: Draw) -> list[tuple[roofline.Time, float]]:
    """Each product's two times, and what it took."""
    works = [(kernel_work(MATMUL, {"m": m, "n": n, "k": k}, "bf16"), took_s) for m, n, k, took_s in p.calls]
    return [
        (roofline.time(work, peak_flops_per_s=p.peak, memory_bytes_per_s=p.memory), took_s) for work, took_s in works
    ]


def _shares(p: Draw) -> list[float]:
    return [time.lower_bound_s / took_s for time, took_s in _fours(p)]


def _derive_four(p: Draw) -> Derivation:
    said = []
    for m, n, k, took_s in p.calls:
        moved = f"2 × ({m} × {k} + {k} × {n} + {m} × {n}) / {tera(p.memory)}"
        said.append(f"max(2 × {m} × {n} × {k} / {tera(p.peak)}, {moved}) / {took_s!r}")
    return Derivation(
        value=min(_shares(p)),
        formula="least of four shares: the longer of (2 × m × n × k / peak) and (bytes / bandwidth), over the time",
        substitution=f"min({', '.join(said)})",
        source=f"{SOURCE_ROOFLINE}; {p.row}",
    )


def _count_four(p: Draw) -> float:
    reached = []
    for m, n, k, took_s in p.calls:
        operations, moved = walked_product(m=m, n=n, k=k, operand_bytes=2)
        needed = [operations / p.peak, moved / p.memory]
        reached.append(sorted(needed)[-1] / took_s)
    return float(sorted(reached)[0])


def _longest_miss(p: Draw) -> float:
    """The share of the product that loses most seconds."""
    missed = {took_s - time.lower_bound_s: time.lower_bound_s / took_s for time, took_s in _fours(p)}
    return missed[max(missed)]


WORST = Drill(
    key="measured-worst-of-four",
    taught=Taught("inner", "Roofline"),
    title="Which of four misses its roof most",
    unit="",
    target_s=240,
    draw=_draw_four,
    small=_small_four,
    prompt=lambda p: (
        f"Four BF16 matmuls on an {p.device}, by the linear layer of {p.engine} ({REPLAYED}): "
        + "; ".join(f"[{m:,} × {k:,}] by [{k:,} × {n:,}] in {took(took_s)}" for m, n, k, took_s in p.calls)
        + f". The card's dense peak is {fmt_si(p.peak, 'FLOP/s')}, its memory bandwidth {fmt_si(p.memory, 'B/s')};"
        " every operand moves once. One of the four misses its own roof by the largest factor. What share of its roof"
        " does that one reach?"
    ),
    derive=_derive_four,
    count=_count_four,
    slips=(
        Slip("peak-alone", lambda p: min(time.compute_s / took_s for time, took_s in _fours(p)))
        | "You held all four against the peak. A matmul of few rows has another roof.",
        Slip("bandwidth-alone", lambda p: min(time.memory_s / took_s for time, took_s in _fours(p)))
        | "You held all four against the bandwidth. A matmul of many rows has another roof.",
        Slip("best", lambda p: max(_shares(p))) | "That one comes nearest to its roof.",
        Slip("most-seconds", _longest_miss) | "That one loses most microseconds. The question is about the factor.",
        Slip("mean", lambda p: fmean(_shares(p))) | "That is the mean of the four. One of them is asked for.",
    ),
)

# --- one product in two formats --------------------------------------------------------------------

FORMATS = ("bf16", "fp8", "nvfp4")  # the widest first


@functools.cache
def _pairs() -> tuple[tuple[TimedCall, TimedCall], ...]:
    """The same product in two formats on one part, whose roofs are not simply as far apart as the peaks."""
    calls = {
        (call.part, tuple(call.sizes.values()), call.format): call for call in chosen(MATMUL, *FORMATS, where=_is_long)
    }
    pairs = [
        (call, calls[part, sizes, thin])
        for (part, sizes, format), call in calls.items()
        for thin in FORMATS[FORMATS.index(format) + 1 :]
        if (part, sizes, thin) in calls
    ]
    return tuple(
        (wide, thin)
        for wide, thin in pairs
        if wide.seconds / thin.seconds < _promise(wide, thin) < 0.93 * thin.peak / wide.peak
    )


def _is_long(call: TimedCall) -> bool:
    return call_bound(call).lower_bound_s > LONG / 4


def _promise(wide: TimedCall, thin: TimedCall) -> float:
    return call_bound(wide).lower_bound_s / call_bound(thin).lower_bound_s


def _draw_pair(rng: random.Random) -> Draw:
    wide, thin = rng.choice(_pairs())
    return drawn(
        **wide.sizes,
        wide=wide.format,
        thin=thin.format,
        device=wide.device,
        engine=wide.engine,
        wide_s=wide.seconds,
        thin_s=thin.seconds,
        wide_peak=wide.peak,
        thin_peak=thin.peak,
        memory=wide.rate,
        row=wide.source,
    )


def _formats_roofs(p: Draw) -> tuple[float, float]:
    sizes = {"m": p.m, "n": p.n, "k": p.k}
    wide, thin = (
        roofline.time(kernel_work(MATMUL, sizes, format), peak_flops_per_s=peak, memory_bytes_per_s=p.memory)
        for format, peak in ((p.wide, p.wide_peak), (p.thin, p.thin_peak))
    )
    return wide.lower_bound_s, thin.lower_bound_s


def _kept(p: Draw) -> float:
    wide, thin = _formats_roofs(p)
    return float(p.wide_s / p.thin_s / (wide / thin))


def _derive_pair(p: Draw) -> Derivation:
    operations, operands = f"2 × {p.m} × {p.n} × {p.k}", f"({p.m} × {p.k} + {p.k} × {p.n})"
    roofs = [
        f"max({operations} / {tera(peak)}, ({bytes_per_element(format):g} × {operands} + 2 × {p.m} × {p.n})"
        f" / {tera(p.memory)})"
        for peak, format in ((p.wide_peak, p.wide), (p.thin_peak, p.thin))
    ]
    return Derivation(
        value=_kept(p),
        formula=(
            "measured speed-up / (roof in the wide format / roof in the narrow one), a roof being the longer of"
            " arithmetic and bytes"
        ),
        substitution=f"{p.wide_s!r} / {p.thin_s!r} / ({roofs[0]} / {roofs[1]})",
        source=f"{SOURCE_ROOFLINE}; {p.row}",
    )


def _count_pair(p: Draw) -> float:
    roofs = []
    for peak, width in ((p.wide_peak, 2), (p.thin_peak, 1)):
        operations, moved = walked_product(m=p.m, n=p.n, k=p.k, operand_bytes=width)
        roofs.append(sorted((operations / peak, moved / p.memory))[-1])
    as_promised_s = p.wide_s * roofs[1] / roofs[0]  # what the narrow format takes if it gains as much as its roof
    return float(as_promised_s / p.thin_s)


GAIN = Drill(
    key="measured-format-gain",
    taught=Taught("product", "Engines and compilers"),
    title="What narrow operands promised, and what came of it",
    unit="",
    target_s=180,
    draw=_draw_pair,
    small=lambda rng: drawn(
        m=rng.randrange(5, 9),
        n=rng.randrange(5, 9),
        k=rng.randrange(5, 9),
        wide="bf16",
        thin="fp8",
        wide_s=rng.randrange(51, 99) / 10,
        thin_s=rng.randrange(21, 49) / 10,
        wide_peak=rng.randrange(200, 400),
        thin_peak=rng.randrange(500, 900),
        memory=rng.randrange(60, 150),
        row="drawn in 2026",
    ),
    prompt=lambda p: (
        f"{p.engine} multiplied {shape(p)} on an {p.device}: in {p.wide.upper()} in {took(p.wide_s)}, in"
        f" {p.thin.upper()} in {took(p.thin_s)}, with what the layer does to its input ({REPLAYED}). Dense peaks:"
        f" {fmt_si(p.wide_peak, 'FLOP/s')} and {fmt_si(p.thin_peak, 'FLOP/s')}; memory {fmt_si(p.memory, 'B/s')}. An"
        f" element of input and weights has {bytes_per_element(p.wide):g} and {bytes_per_element(p.thin):g} bytes"
        f"{', scales included' if p.thin == 'nvfp4' else ''}, one of the output 2 in both; each moves once. The ratio"
        " of the two roofs is the promised speed-up. What share of the promised speed-up was reached?"
    ),
    derive=_derive_pair,
    count=_count_pair,
    slips=(
        Slip("peaks-promise", lambda p: p.wide_s / p.thin_s / (p.thin_peak / p.wide_peak))
        | "You let the peaks promise. Does arithmetic bind in both formats, and is every byte narrower?",
        Slip("gain", lambda p: p.wide_s / p.thin_s) | "That is the measured speed-up. How much was promised?",
        Slip("promise", lambda p: _formats_roofs(p)[0] / _formats_roofs(p)[1])
        | "That is the promise of the two roofs. How much of it came?",
        Slip("upside-down", lambda p: 1 / _kept(p)) | "That is the promise over what came. Turn it over.",
    ),
)

DRILLS = (WORST, GAIN)
