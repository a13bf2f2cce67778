"""The page of `threeloops trace`: where the time went, kernels, ranks, and three suspects."""

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from threeloops.commands.trace.own_drill import Asks, question_of
from threeloops.commands.trace.told_page import Table, as_rows, html_page, suspect_rows, told_suspects
from threeloops.facts.hardware import Part
from threeloops.facts.traced_steps import Traced
from threeloops.inner_loop.profiled.rank_account import CPUS, RankAccount
from threeloops.inner_loop.profiled.rank_record import TORCH
from threeloops.inner_loop.profiled.rank_waits import RankWaits
from threeloops.inner_loop.profiled.trace_suspects import (
    ALLOCATOR,
    BELOW_ROOF,
    COMPILATION,
    DRIVER_CALLS,
    HOST_WORK,
    NO_ROOF,
    OPERATORS,
    STRAGGLER,
    UNTOLD,
    VECTORS,
)
from threeloops.units import counted, fmt_percent, fmt_seconds

# Each suspect, and a drill on it; the drill says which part teaches it.
DRILL = {
    "starved loader": "profiling-loader-fixed",
    "exposed communication": "profiling-exposed-communication",
    "exposed copies": "overheads-loader-workers",
    "hidden syncs": "profiling-hidden-syncs",
    "launch-bound": "overheads-break-even",
    "unexplained pauses": "profiling-idle-share",
    "memory-bound": "roofline-norm-rate",
    "memory leak": "overheads-reserved-memory",
    ALLOCATOR: "overheads-reserved-memory",
    HOST_WORK: "amdahl-pace-setter",
    DRIVER_CALLS: "profiling-idle-share",
    STRAGGLER: "failure-slowest-rank",
    VECTORS: "attention-fused-chain",
    UNTOLD: "roofline-ridge-point",
    BELOW_ROOF: "roofline-measured-ceiling",
    NO_ROOF: "roofline-measured-ceiling",
    OPERATORS: "overheads-graph-replay",
    COMPILATION: "overheads-padded-shapes",
}
# What the host did while nothing was computed, exchanged or copied.
HOST = {
    "starved loader": "waited for a batch",
    "hidden syncs": "had waited for the device",
    "launch-bound": "asked for kernels, one after the other",
    ALLOCATOR: "asked the driver for memory",
    HOST_WORK: "worked for a millisecond and longer, asking for nothing",
    DRIVER_CALLS: "was in single calls of the driver of 1 ms and more",
    OPERATORS: "was between two operators",
    COMPILATION: "compiled",
    "unexplained pauses": "did what was not recorded",
}
# The same where operators stand for kernels.
HOST_OF_OPERATORS = HOST | {HOST_WORK: "ran Python for more than 100 µs between two operators"}
NO_SUSPECT = "No suspect: nothing takes a hundredth of the time but what computes."
NAMED = 5  # kernels and products that are named
ROUNDED = 6  # digits of a share that is a difference
WIDEST = 72  # characters of a kernel's name
ASSUMES = (
    "a moment with several causes counts for the first of: exchange, copy, loader, sync, launch",
    "up to 100 µs between two operators of the host are the Python between them",
    "what the profiler itself took for every event that it recorded is in all figures",
)
SOURCES = (  # beside what the file is
    "Meta, Holistic Trace Analysis, 2023 (temporal and idle-time breakdown)",
)


def as_text(accounts: Sequence[RankAccount], waits: RankWaits | None, shown: RankAccount, part: Part | None) -> str:
    """The page for a terminal."""
    rows = as_rows([*_head(shown), Table(_time_table(shown)), "", *_kernel_blocks(shown)])
    rows += as_rows([*_product_blocks(shown, part), *_rank_blocks(accounts, waits)])
    rows += suspect_rows(told_suspects(shown.suspects, DRILL, asks_of(shown))) or ["", NO_SUSPECT]
    rows += ["", said] if (said := _slowest_by_itself(accounts, waits, shown)) else []
    return "\n".join(row.rstrip() for row in (*rows, "", *_footer(shown)))


def as_html(accounts: Sequence[RankAccount], waits: RankWaits | None, shown: RankAccount, part: Part | None) -> str:
    """The same for a browser."""
    blocks = [*_head(shown), Table(_time_table(shown)), *_kernel_blocks(shown), *_product_blocks(shown, part)]
    blocks += [*_rank_blocks(accounts, waits), _slowest_by_itself(accounts, waits, shown)]
    named = {"exposed communication": "exchanges, not hidden", "exposed copies": "copies, not hidden"}
    nothing = {ill: f"nothing; the host {_meanwhile(shown)[ill]}" for ill in shown.idle if ill in HOST}
    shares = {"computes": shown.gauges.busy} | {(named | nothing)[ill]: share for ill, share in shown.idle.items()}
    return html_page(
        blocks, title=f"Where the time of {shown.record.name} went", shares=shares, none=NO_SUSPECT,
        suspects=told_suspects(shown.suspects, DRILL, asks_of(shown)), footer=_footer(shown),
    )  # fmt: skip


def asks_of(shown: RankAccount) -> Asks:
    """What `--drill` asks of this rank's suspects."""
    return functools.partial(question_of, growth_bytes=shown.gauges.growth_bytes_per_step)


def _slowest_by_itself(accounts: Sequence[RankAccount], waits: RankWaits | None, shown: RankAccount) -> str:
    if not waits or shown.rank == waits.slowest:
        return ""
    own = next(one for one in accounts if one.rank == waits.slowest)
    first = next((one for one in own.suspects if one.illness != STRAGGLER), None)
    return f"Rank {waits.slowest} by itself: {first.illness}, {first.because}" if first else ""


def _footer(shown: RankAccount) -> list[str]:
    sources = (shown.record.source, *SOURCES)
    return [*(f"  assumes: {sentence}" for sentence in ASSUMES), *(f"  source:  {source}" for source in sources)]


def _head(shown: RankAccount) -> list[str]:
    record, read = shown.record, shown.gauges
    steps = sum(bool(step) for step, _, _ in record.steps)
    what = f"{counted(steps, 'step')} in " if steps else "no step is marked; "
    on = f"device {shown.device} of rank {shown.rank}" if shown.device else f"rank {shown.rank}, operators of its CPU"
    named = f" ({record.hardware})" if record.hardware else ""
    rows = [f"{record.name}: {on}{named}, {what}{fmt_seconds(read.span_s)}"]
    rows += [f"  {record.cut}; what follows is of that part"] if record.cut else []
    rows += [f"  {remark}" for remark in record.remarks]
    rows += (
        []
        if steps or record.source != TORCH
        else ["  a schedule with warm-up marks steps and leaves the start out, which may be in this"]
    )
    if not shown.device:
        of_device = ", so that nothing is said of the device" if record.hardware else ""
        rows.append(
            f"  no kernel of a GPU was recorded{of_device} (ProfilerActivity.CUDA records them): what computes here are"
            " the CPU's operators"
        )
    others = sorted(set(record.devices) - {shown.device}) if shown.device else []
    rows += [f"  the file has device {', '.join(others)}, too; it computed less, and is left out"] if others else []
    if record.unread:
        what = ", ".join(f"{number:,} of {category!r}" for category, number in record.unread.most_common(NAMED))
        rows.append(f"  events in categories that this does not know, and leaves out: {what}")
    return [*rows, ""]


def _time_table(shown: RankAccount) -> list[tuple[str, str, str]]:
    read = shown.gauges
    rest = read.idle - read.exposed_communication - read.exposed_copies
    rows = [("of the time", "", ""), ("computes", fmt_percent(read.busy), "")]
    if shown.exchanges:
        hidden = _hidden(read.exposed_communication, shown.exchanges)
        rows.append(("exchanges, not hidden", fmt_percent(read.exposed_communication), hidden))
    if shown.copies:
        rows.append(
            ("copies, not hidden", fmt_percent(read.exposed_copies), _hidden(read.exposed_copies, shown.copies))
        )
    rows.append(("does nothing; the host meanwhile" if shown.device else "does nothing", fmt_percent(rest), ""))
    did = _meanwhile(shown)
    rows += [(f"  {did[ill]}", fmt_percent(share), "") for ill, share in shown.idle.items() if _seen(ill, share)]
    return rows


def _hidden(exposed: float, of: float) -> str:
    return f"{fmt_percent(max(0.0, round(1 - exposed / of, ROUNDED)))} hidden"


def _meanwhile(shown: RankAccount) -> Mapping[str, str]:
    return HOST if shown.device else HOST_OF_OPERATORS


def _seen(illness: str, share: float) -> bool:
    return illness in HOST and share >= 0.001


def _kernel_blocks(shown: RankAccount) -> list[str | Table]:
    what = "kernels" if shown.device else "operators"
    rows: list[str | Table] = [_table(f"{what} by family", shown.by_family), ""]
    rows += [_table("exchanges, hidden or not", shown.by_exchange), ""] if shown.by_exchange else []
    rows += [_table(f"longest {what}", shown.by_name, most=NAMED), ""]
    if shown.device:
        a_step = f", {shown.launches_per_step:,.0f} launches a step" if shown.launches_per_step else ""
        median = fmt_seconds(shown.median_kernel_s)
        rows.append(f"  median kernel {median}, {fmt_percent(shown.short_kernels)} below 10 µs{a_step}")
    told = [
        f"{one.number:,} of {_edge(one.below_s)} ({fmt_seconds(one.seconds)})" for one in shown.pauses if one.number
    ]
    return [*rows, f"  pauses: {', '.join(told) or 'none'}"]


def _table(head: str, of: Mapping[str, Traced], *, most: int | None = None) -> Table:
    """The first of them, each with its share of all."""
    total = sum(one.seconds for one in of.values()) or 1.0
    rows = [(head, "number", "time", "share of them")]
    for name, one in list(of.items())[:most]:
        rows.append((_short(name), f"{one.kernels:,}", fmt_seconds(one.seconds), fmt_percent(one.seconds / total)))
    return Table(rows)


def _edge(below_s: float) -> str:
    return "1 ms and more" if below_s == float("inf") else f"less than {fmt_seconds(below_s)}"


def _short(name: str) -> str:
    return name if len(name) <= WIDEST else name[: WIDEST - 1] + "…"


def _product_blocks(shown: RankAccount, part: Part | None) -> list[str | Table]:
    if not shown.products:
        why = "operators of matmuls carry no shapes" if not shown.record.with_shapes else "no matmul is linked to one"
        how = "record_shapes=True records them" if shown.record.source == TORCH else "torch's profiler records them"
        return ["", f"  no roof of matmuls: {why} ({how})"] if part else []
    if not part:
        return ["", f"  {counted(len(shown.products), 'matmul')} with shapes: --hardware puts their roof beside them"]
    if (part.family == CPUS) == bool(shown.device):
        ran, is_one = ("a device", "a CPU") if shown.device else ("the CPU", "no CPU")
        return ["", f"  no roof of matmuls: they ran on {ran}, and {part.key} is {is_one}"]
    if not shown.roofs:
        return ["", f"  no roof of matmuls: {part.key} lists no peak of their format, or the file does not say it"]
    table = [("matmuls", "calls", "time", "bound", "expected", "of the roof")]
    table += [
        (one.timed.name, f"{one.timed.calls:,}", fmt_seconds(one.timed.seconds), fmt_seconds(one.bound_s),
         "" if one.expected_s is None else fmt_seconds(one.expected_s), fmt_percent(one.share))
        for one in shown.roofs[:NAMED]
    ]  # fmt: skip
    return ["", Table(table)]


def _rank_blocks(accounts: Sequence[RankAccount], waits: RankWaits | None) -> list[str | Table]:
    if len(accounts) < 2:
        return []
    table = [("rank", "computes", "exchanges, not hidden", "waits for another")]
    for one in sorted(accounts, key=lambda one: one.rank):
        waited = fmt_percent(waits.shares[one.rank]) if waits else ""
        table.append(
            (str(one.rank), fmt_percent(one.gauges.busy), fmt_percent(one.gauges.exposed_communication), waited)
        )
    rows: list[str | Table] = ["", Table(table)]
    if not waits:
        missing = "no exchange in which each waits for all (a send and a broadcast are none) was found on two of them"
        return [*rows, f"  {missing}, so that it is not known who waited"]
    since = f", in every step since step {waits.since}" if waits.since else ""
    rows.append(
        f"  waited for: rank {waits.slowest}{since}; {waits.matched:,} exchanges found on all ranks of their group"
    )
    return rows


def as_json(accounts: Sequence[RankAccount], waits: RankWaits | None, shown: RankAccount, part: Part | None) -> str:
    """For a script: shares from 0 to 1, seconds."""
    ranks = [
        {"rank": one.rank, "file": one.record.name, "cut": one.record.cut, "span_s": one.gauges.span_s,
         "computes": one.gauges.busy, "waits": waits.shares[one.rank] if waits else None,
         "first_suspect": one.suspects[0].illness if one.suspects else None}
        for one in accounts
    ]  # fmt: skip
    data: dict[str, Any] = {
        "title": f"trace of {shown.record.name}",
        "rank": shown.rank,
        "shares": {"computes": shown.gauges.busy, **shown.idle},
        "exchanges": {"all": shown.exchanges, "not_hidden": shown.gauges.exposed_communication},
        "copies": {"all": shown.copies, "not_hidden": shown.gauges.exposed_copies},
        "families": {name: {"number": one.kernels, "seconds": one.seconds} for name, one in shown.by_family.items()},
        "exchanged": {name: {"number": one.kernels, "seconds": one.seconds} for name, one in shown.by_exchange.items()},
        "matmuls": [
            {"name": one.timed.name, "calls": one.timed.calls, "seconds": one.timed.seconds,
             "bound_s": one.bound_s, "expected_s": one.expected_s}
            for one in shown.roofs
        ],
        "hardware": part.key if part else None,
        "ranks": ranks,
        "slowest": {"rank": waits.slowest, "since_step": waits.since or None} if waits else None,
        "suspects": [
            {"illness": one.illness, "share": one.share, "at_most": one.at_most, "because": one.because,
             "try_first": one.first_try, "record": one.record_next or None, "drill": DRILL[one.illness]}
            for one in shown.suspects
        ],
        "assumes": ASSUMES,
        "sources": [shown.record.source, *SOURCES],
    }  # fmt: skip
    return json.dumps(data, indent=1, ensure_ascii=False)
