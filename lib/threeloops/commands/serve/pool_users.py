"""Pool users: what so many users see of given GPUs of which some read prompts and some decode, split in every way,
beside copies that do both.
"""

import argparse

from threeloops import units
from threeloops.commands.serve.copies import Served
from threeloops.commands.serve.fleets import Fleet
from threeloops.commands.serve.in_time import goodput_lines
from threeloops.commands.serve.lines import fleet_data, money_lines
from threeloops.commands.serve.pool_answer import (
    OF_PROMPTS,
    SOURCES,
    flags_said,
    handover_lines,
    read_line,
    step_line,
)
from threeloops.commands.serve.pools import Pools
from threeloops.commands.working import Line, Working, plain

HEAD = (
    *("tp", "prefill copies", "decode copies", "GPUs", "TTFT p50", "p99", "ITL p50", "p99", "TPOT p50", "p99"),
    *("tokens/s per user", "per GPU"),
)
SPLIT = (
    "a prefill copy reads one prompt at a time in each of its groups, first come first served; a cache goes to the"
    " decode copy with the fewest requests; its way, and the wait for a seat there, count in ITL and TPOT, not in TTFT;"
    " of the links no queue is counted"
)


def split_working(
    served: Served,
    tried: list[list[Pools]],
    mixed: Fleet | None,
    given: argparse.Namespace,
    *,
    title: str,
    inputs: dict[str, str],
    assumes: tuple[str, ...],
    lost: list[tuple[str, str]],
) -> Working:
    """The calculation for the best of all splits; `mixed`: as many GPUs in copies that do both."""
    found = [pools for splits in tried for pools in splits]
    kind = any(pools.kind == "expected" for pools in found)
    found = [pools for pools in found if not kind or pools.kind == "expected"]
    best = max(found, key=lambda pools: _worth(served, pools))
    return Working(
        title=title,
        inputs=inputs | {"load": f"{units.counted(given.users, 'user')}, each asking again at once"},
        table=(HEAD, *(_row(pools, given) for pools in _shown(served, found, best))),
        lines=(
            read_line(best),
            _flow_line(served, best),
            step_line(best),
            *handover_lines(best),
            *goodput_lines(served, best.decode, kind=best.kind),
            *money_lines(served.part, given.gpus, best.decode.tokens_per_s, given.price),
        ),
        reasons=(*lost, *_reasons(served, best, mixed), *flags_said(served, best)),
        conclusion=_conclusion(served, best, given),
        assumes=(*assumes, SPLIT),
        sources=SOURCES,
        data=_data(best, mixed, given) | {"splits": [_data(pools, None, given) for pools in found]},
    )


def _worth(served: Served, pools: Pools) -> tuple[bool, float]:
    return pools.keeps(served), pools.decode.tokens_per_s


def _shown(served: Served, found: list[Pools], best: Pools) -> list[Pools]:
    """Every split of the best tensor group, and the best of each other one."""
    groups: dict[int, list[Pools]] = {}
    for pools in found:
        groups.setdefault(pools.decode.copy.layout.tp, []).append(pools)
    shown = []
    for splits in groups.values():
        shown += splits if best in splits else [max(splits, key=lambda pools: _worth(served, pools))]
    return shown


def _row(pools: Pools, given: argparse.Namespace) -> tuple[str, ...]:
    decode = pools.decode
    numbers = (decode.copy.layout.tp, pools.copies, decode.copies, pools.gpus)
    times = (*pools.ttft_s, *decode.seen.itl_s, *decode.seen.tpot_s)
    rates = (f"{decode.tokens_per_s / given.users:.1f}", f"{decode.tokens_per_s / given.gpus:,.0f}")
    return (*map(str, numbers), *map(units.fmt_seconds, times), *rates)


def _flow_line(served: Served, pools: Pools) -> Line:
    tokens_per_s, answer = pools.decode.tokens_per_s, served.lengths.answer
    return Line(
        name="prefill copies are busy",
        formula="tokens of answers in a second / tokens of an answer × seconds of a prompt / copies",
        numbers=f"{plain(tokens_per_s)} / {answer} × {plain(pools.read_s)} / {pools.copies}",
        value=tokens_per_s / answer * pools.read_s / pools.copies,
        unit="",
    )


def _reasons(served: Served, pools: Pools, mixed: Fleet | None) -> list[tuple[str, str]]:
    if mixed is None or mixed.copy.kind != pools.kind:
        return []
    tokens, kept = mixed.tokens_per_s / pools.decode.tokens_per_s, ""
    if served.promised_s and mixed.keeps(served) != pools.keeps(served):
        kept = f"; they {'keep' if mixed.keeps(served) else 'do not keep'} what is promised, and the pools"
        kept += " do" if pools.keeps(served) else " do not"
    late = ", ".join(f"{name.upper()} {units.fmt_seconds(mixed.seen.late_s(name))}" for name in ("ttft", "itl", "tpot"))
    said = f"as many GPUs in copies of {mixed.copy.layout.gpus} that do both make {tokens:.2f} times the tokens, with"
    return [("copies that do both", f"{said} {late} at p99{kept}.")]


def _conclusion(served: Served, pools: Pools, given: argparse.Namespace) -> str:
    decode, bounds = pools.decode, pools.kind == "bounds"
    least, most = ("at least ", "at most ") if bounds else ("", "")
    times = {"TTFT": pools.ttft_s, "ITL": decode.seen.itl_s, "TPOT": decode.seen.tpot_s}
    said = ", ".join(f"{name} {least}{' and '.join(map(units.fmt_seconds, both))}" for name, both in times.items())
    idle = f", {given.gpus - pools.gpus} idle" if given.gpus > pools.gpus else ""
    kept = (
        "not kept" if not pools.keeps(served) else "kept by the bounds, which no engine reaches" if bounds else "kept"
    )
    return (
        f"{units.counted(given.users, 'user')} on {units.counted(given.gpus, 'GPU')}, {pools.prefill_gpus} that read"
        f" prompts and {decode.gpus} that decode{idle}: {said} at median and p99; {most}"
        f"{decode.tokens_per_s / given.gpus:,.0f} tokens/s per GPU."
        + (f" The promises are {kept}." if served.promised_s else "")
    )


def _data(pools: Pools, mixed: Fleet | None, given: argparse.Namespace) -> dict[str, object]:
    layout, decode = pools.prefill.layout, pools.decode
    of_decode = {name: value for name, value in fleet_data(decode).items() if not OF_PROMPTS & {*name.split("_")}}
    return {
        "num_gpus": pools.gpus,
        "prefill": {"tp": layout.tp, "dp": layout.dp, "copies": pools.copies, "num_gpus": pools.prefill_gpus},
        "decode": of_decode,
        "times_are": pools.kind,
        "ttft_p50_s": pools.ttft_s[0],
        "ttft_p99_s": pools.ttft_s[1],
        "tpot_p50_s": decode.seen.tpot_s[0],
        "tpot_p99_s": decode.seen.tpot_s[1],
        "tokens_per_s": decode.tokens_per_s,
        "tokens_per_s_per_gpu": decode.tokens_per_s / given.gpus,
        "tokens_per_s_of_copies_that_do_both": mixed.tokens_per_s if mixed else None,
        "handover_s": pools.handover.seconds,
    }
