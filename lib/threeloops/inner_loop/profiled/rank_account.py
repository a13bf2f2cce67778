"""Rank account: all that is said of one rank: where its time went, its kernels, its products, its suspects."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from threeloops.facts.hardware import Part
from threeloops.facts.traced_steps import Traced
from threeloops.inner_loop.profiled.rank_parts import AT_ONCE
from threeloops.inner_loop.profiled.rank_record import RankRecord
from threeloops.inner_loop.profiled.rank_timeline import (
    device_of,
    exchanges_by_kind,
    families,
    kernel_lengths,
    kernels_by_name,
    longest_of,
    window,
)
from threeloops.inner_loop.profiled.rank_waits import RankWaits, rank_waits
from threeloops.inner_loop.profiled.roofed_products import RoofedProduct, TimedProduct, roofed, timed_products
from threeloops.inner_loop.profiled.span_columns import pairs
from threeloops.inner_loop.profiled.taken_apart import Pauses, record_gauges, record_time
from threeloops.inner_loop.profiled.trace_suspects import Suspect, suspects, with_waits
from threeloops.inner_loop.trace_gauges import Gauges
from threeloops.units import counted

CPUS = "cpus"  # the catalogue's file of processors


@dataclass(frozen=True, slots=True, kw_only=True)
class RankAccount:
    """One rank, read."""

    record: RankRecord  # without its operators and calls, which are read by now
    rank: int
    device: str  # empty where operators stand for kernels
    gauges: Gauges
    idle: dict[str, float]  # by illness, shares of the time
    exchanges: float  # share of the time in which something is exchanged, hidden or not
    copies: float
    by_name: dict[str, Traced]
    by_family: dict[str, Traced]
    by_exchange: dict[str, Traced]
    median_kernel_s: float
    short_kernels: float  # share of kernels below 10 µs
    launches_per_step: float | None
    pauses: tuple[Pauses, ...]
    products: tuple[TimedProduct, ...]
    roofs: tuple[RoofedProduct, ...]
    suspects: tuple[Suspect, ...]


def rank_account(record: RankRecord, *, rank: int, part: Part | None = None, at_once: int = AT_ONCE) -> RankAccount:
    """Everything about one rank by itself; on `part`, where its products' roofs are asked for; about `at_once` spans
    are taken apart at a time.

    Raises:   ValueError for a record in which nothing computes, or nothing lasts, or of whose kernels only the asking
              was recorded
    """
    device = device_of(record)
    _refuse_unseen(record)
    _refuse_untimed(record, device)
    whole = window(record)
    time = record_time(record, whole, at_once=at_once)
    if not time.computes_s:
        where = "in its steps" if record.steps else "between its first event and its last"
        raise ValueError(f"{record.name} holds nothing that computes {where}")
    median_s, short = kernel_lengths(record) if device else (0.0, 0.0)
    read = record_gauges(record, whole, time, median_kernel_s=median_s)
    idle = {illness: seconds / read.span_s for illness, seconds in time.idle_s.items()}
    by_name = kernels_by_name(record, whole)
    by_family = families(record, by_name)
    products = timed_products(record)
    own = part and (part.family == CPUS) != bool(device)  # of the kind that computed here
    roofs = [one for one in (roofed(timed, part) for timed in products) if one] if part and own else []
    reached = {}
    if roofs:  # what no roof is known of is taken to have reached it: a repair of the others brings at most so much
        known_s, bound_s = sum(one.timed.seconds for one in roofs), sum(one.bound_s for one in roofs)
        other_s = max(0.0, by_family["matmuls"].seconds - known_s) if "matmuls" in by_family else 0.0
        reached["matmuls"] = known_s + other_s, min(known_s, bound_s) + other_s
    return RankAccount(
        record=_light(record),
        rank=rank,
        device=device,
        gauges=read,
        idle=idle,
        exchanges=time.exchanges_s / read.span_s,
        copies=time.copies_s / read.span_s,
        by_name=by_name,
        by_family=by_family,
        by_exchange=exchanges_by_kind(record, whole),
        median_kernel_s=median_s,
        short_kernels=short,
        launches_per_step=record.num_launches / len(record.steps) if record.steps else None,
        pauses=time.pauses,
        products=tuple(products),
        roofs=tuple(roofs),
        suspects=suspects(
            record,
            read,
            by_family,
            idle=idle,
            long=time.long_pauses,
            reached=reached,
            longest=longest_of(record, by_name),
        ),
    )


def _refuse_unseen(record: RankRecord) -> None:
    """Raises ValueError where a device was asked for kernels and nothing that it did was recorded: there an operator's
    time is asking and waiting, and no computing.
    """
    if record.num_launches and not record.devices:
        raise ValueError(
            f"{record.name} launches {counted(record.num_launches, 'kernel')} and holds none, so that nothing can be"
            " said of the device, nor that its operators compute; ProfilerActivity.CUDA records kernels, without"
            " CUPTI's counters (experimental_config) beside it, and where the driver lets users trace"
        )


def _refuse_untimed(record: RankRecord, device: str) -> None:
    """Raises ValueError where kernels, or operators without them, all begin and end at the same moment."""
    rows = [record.devices[device].kernels] if device else [*record.operators.values()]
    number = sum(map(len, rows))
    if number and not any(end > start for spans in rows for start, end in pairs(spans)):
        what = counted(number, "kernel" if device else "operator")
        raise ValueError(
            f"{record.name} has {what}, and none of them lasts: each ends when it begins, so that no share of the time"
            " can be said; record again, and export it without rounding its times"
        )


def _light(record: RankRecord) -> RankRecord:
    """A record without what is large: many ranks are held together."""
    steps = record.steps or [("", *window(record))]
    return replace(record, steps=steps, operators={}, calls={}, python={}, products={}, readings={})


def held_together(accounts: Sequence[RankAccount]) -> tuple[RankWaits | None, list[RankAccount]]:
    """Ranks of one run: what they waited for each other, and their suspects with that said apart."""
    waits = rank_waits([replace(one.record, rank=one.rank) for one in accounts]) if len(accounts) > 1 else None
    if waits is None:
        return None, list(accounts)
    return waits, [replace(one, suspects=with_waits(one.suspects, one.gauges, waits, one.rank)) for one in accounts]
