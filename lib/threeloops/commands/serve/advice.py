"""Advice: what binds a fleet, what would help, and the line that starts an engine so."""

import math
from dataclasses import replace

from threeloops import units
from threeloops.commands.serve.copies import TP, Copy, Served, copy_of
from threeloops.commands.serve.engine_flags import engine_line, engine_remarks
from threeloops.commands.serve.fleets import Fleet
from threeloops.commands.serve.lines import token_of
from threeloops.product_loop.kv_cache import states_bytes
from threeloops.product_loop.sizing.bound_steps import bound_step_s
from threeloops.product_loop.sizing.served_layout import ServedLayout

NO_CHANGE = 0.995  # of a request's work: what changes less is not worth a word


def reasons(served: Served, fleet: Fleet) -> list[tuple[str, str]]:
    """What binds, what would help, and the engine's own flags."""
    found = []
    if fleet.largest is not None:
        broken = fleet.largest.broken.upper()
        why = f"a little more load a copy, and {broken} breaks its promise." if broken else _full(fleet)
        found.append(("what binds", why))
    chunk, each = fleet.limits.chunk(fleet.copy.layout.lanes), " of each group" if fleet.copy.layout.dp > 1 else ""
    if served.promised.itl_s is not None and chunk < served.lengths.new:
        steps = math.ceil(served.lengths.new / chunk)
        found.append(
            (
                "chunks",
                f"ITL leaves {chunk:,} tokens of prompts in a step{each}, so that a prompt of {served.lengths.new:,}"
                f" takes {steps} steps; --tpot instead of --itl promises the mean gap, and lets prompts be read at"
                " once.",
            )
        )
    if fleet.copy.expected is not None:
        token = token_of(served, fleet)
        name = max((name for name in token.parts if name != "prompts of others"), key=lambda name: token.parts[name])
        found.append(("largest part of a step", f"{name}, {token.parts[name] / token.step_s:.0%}.".replace("%", " %")))
    changes = sorted(_changes(served, fleet), key=lambda change: change[1])
    found += _copies_said(served, fleet.copy)
    helps = ", ".join(f"{what} {100 * (1 - work):.0f} %" for what, work in changes if work < NO_CHANGE)
    if helps:
        found.append(("what would help", f"of a GPU's work on a request each takes off, by itself: {helps}."))
    found.append((f"in {served.engine}'s flags", engine_line(served, fleet)))
    return found + [("besides", remark) for remark in engine_remarks(served)]


def _full(fleet: Fleet) -> str:
    """What keeps more requests out where no promise is broken yet."""
    if fleet.limits.max_num_seqs < fleet.copy.seats:
        return f"the {fleet.limits.max_num_seqs} requests at a time, more than which would break ITL or TPOT."
    return "the seats: memory, or the engine's limit."


def _changes(served: Served, fleet: Fleet) -> list[tuple[str, float]]:
    """What could be changed, and a request's work on a GPU after it over before; what is impossible is left out."""
    layout, lengths = fleet.copy.layout, served.lengths
    tp = layout.tp
    half = replace(lengths, kept=lengths.prompt - max(1, lengths.new // 2))
    tries = {
        f"fp8 weights ({served.weights} now)": (replace(served, weights="fp8"), tp),
        f"an fp8 cache ({served.cache} now)": (replace(served, cache="fp8"), tp),
        "half of what is computed of a prompt found in a prefix cache": (replace(served, lengths=half), tp),
        **({f"tp {2 * tp}": (served, 2 * tp)} if 2 * layout.stage_gpus in TP else {}),
        **_own_requests(served, layout),
    }
    found, (now, kind) = [], _work(served, tp, fleet.inside)
    for what, (changed, ranks) in tries.items():
        try:
            work, other = _work(changed, ranks, fleet.inside * ranks * changed.dp * changed.pp // layout.gpus)
        except ValueError:
            continue
        if kind == other:  # a bound is not held against what is expected
            found.append((what, work / now))
    return found


def _copies_said(served: Served, copy: Copy) -> list[tuple[str, str]]:
    """What decode context parallelism would do, or does."""
    layout = copy.layout
    copies = layout.copies
    if layout.tp == 1 or copies == 1 or states_bytes(served.model) or served.engine == "TensorRT-LLM":
        return []
    other = replace(layout, dcp=1 if layout.dcp > 1 else copies)
    here, there = (one.seats(served.lengths.mean_end) for one in (layout, other))
    inside = max(1, min(copy.seats, here, there))
    steps = (bound_step_s(one, requests=inside, context=served.lengths.mean_context) for one in (other, layout))
    least, now = map(units.fmt_seconds, steps)
    seats = f"{there:,} requests fit instead of {here:,}"
    flag = f"with --dcp {copies}" if layout.dcp == 1 else "without --dcp"
    said = f"{layout.tp} GPUs would keep {copies} copies of a cache; {flag} {seats}, and a step of {inside:,} takes at"
    return [("copies of a cache", f"{said} least {least} instead of {now}.")]


def _own_requests(served: Served, layout: ServedLayout) -> dict[str, tuple[Served, int]]:
    """Where experts and a copy on several GPUs are: each GPU with requests of its own; and the other way round."""
    if not layout.has_experts or layout.gpus == 1 or layout.pp > 1:
        return {}
    if layout.dp > 1:
        return {f"one group (--tp {layout.gpus} instead of --dp)": (replace(served, dp=1, ep=None), layout.gpus)}
    return {f"own requests for each GPU (--tp 1 --dp {layout.tp})": (replace(served, dp=layout.tp, ep=None), 1)}


def _work(served: Served, tp: int, inside: int) -> tuple[float, str]:
    """GPU-seconds that a request uses up among so many, and which times these are."""
    copy = copy_of(served, tp)
    return copy.layout.gpus * copy.times.work_s(min(inside, copy.seats), served.in_steps.answer), copy.kind


def more_copies(best: Fleet, requests_per_s: float) -> list[tuple[str, str]]:
    """Where rounding up does not do."""
    assert best.largest is not None
    rounded = math.ceil(requests_per_s / best.largest.requests_per_s)
    if best.copies == rounded:
        return []
    said = f"rounded up, {rounded} would do; at the rate that is then left to each a percentile is a little above its"
    return [("copies", f"{said} promise, and {best.copies} keep all.")]
