"""Pool answer: how many GPUs read prompts and how many decode so that a load's promises hold, beside copies that do
both.
"""

import argparse
from dataclasses import replace

from threeloops import units
from threeloops.commands.serve.advice import more_copies
from threeloops.commands.serve.copies import Served
from threeloops.commands.serve.engine_flags import engine_line, pool_flags
from threeloops.commands.serve.fleets import Fleet, prefill_limits
from threeloops.commands.serve.in_time import goodput_lines
from threeloops.commands.serve.lines import fleet_data, money_lines
from threeloops.commands.serve.pools import Pools, reading, through_both
from threeloops.commands.working import Line, Working, plain

HEAD = ("pool", "tp", "dp", "copies", "GPUs", "busy")
POOLED = (
    "a prefill copy reads one prompt at a time in each of its groups, first come first served; engines that read"
    " several short ones at once need fewer",
    "a cache is handed over whole when its prompt is read, and the wait counts in TPOT, not in TTFT; of the links no"
    " queue is counted; goodput counts the wait for a seat of a decode copy in TPOT, too",
)
OF_PROMPTS = {"prompt", "ttft", "least"}  # what a copy that only decodes has none of
SOURCES = ("Zhong et al., DistServe, 2024, arXiv:2401.09670", "Patel et al., Splitwise, 2023, arXiv:2311.18677")


def pools_working(
    served: Served,
    tried: list[Pools],
    mixed: Fleet | None,
    given: argparse.Namespace,
    *,
    title: str,
    inputs: dict[str, str],
    assumes: tuple[str, ...],
    lost: list[tuple[str, str]],
) -> Working:
    """The calculation for the smallest of what was tried; `mixed`: copies that do both, where any keep the promises."""
    kind = any(one.decode.copy.expected for one in tried)
    best = min(
        (one for one in tried if bool(one.decode.copy.expected) == kind),
        key=lambda one: (one.gpus, one.decode.copy.layout.tp),
    )
    least = "" if best.decode.copy.expected and best.prefill.expected else "at least "
    return Working(
        title=title,
        inputs=inputs | {"load": f"{given.rate:g} requests/s"},
        table=(HEAD, *_rows(best, given.rate)),
        lines=(
            *_lines(served, best, given.rate),
            *goodput_lines(served, through_both(served, best, given.rate), given.rate, kind=best.kind),
            *money_lines(served.part, best.gpus, best.decode.tokens_per_s, given.price),
        ),
        reasons=(*lost, *more_copies(best.decode, given.rate), *_reasons(served, best, mixed)),
        conclusion=(
            f"It takes {least}{units.counted(best.gpus, 'GPU')} for {given.rate:g} requests/s:"
            f" {best.prefill_gpus} read prompts, {best.decode.gpus} decode; TTFT {_both(best.ttft_s)}, TPOT"
            f" {_both(best.decode.seen.tpot_s)} at median and p99."
        ),
        assumes=(*assumes, *POOLED),
        sources=SOURCES,
        data=_data(best, mixed),
    )


def _rows(pools: Pools, rate: float) -> list[tuple[str, ...]]:
    rows = []
    for name, copy, copies, busy in (
        ("prefill", pools.prefill, pools.copies, rate * pools.read_s / pools.copies),
        ("decode", pools.decode.copy, pools.decode.copies, pools.decode.inside / pools.decode.limits.max_num_seqs),
    ):
        layout = copy.layout
        numbers = (layout.tp, layout.dp, copies, copies * layout.gpus)
        rows.append((name, *map(str, numbers), f"{busy:.0%}".replace("%", " %")))
    return rows


def _lines(served: Served, pools: Pools, rate: float) -> list[Line]:
    decode = pools.decode
    assert decode.largest is not None
    return [
        read_line(pools),
        Line(
            name="prefill copies, if they never waited",
            formula="rate × seconds of a prompt; the promise on the first token needs more",
            numbers=f"{plain(rate)} × {plain(pools.read_s)}",
            value=rate * pools.read_s,
            unit="",
        ),
        step_line(pools),
        Line(
            name="decode copies, before rounding up",
            formula="rate / the largest simulated rate of one copy",
            numbers=f"{plain(rate)} / {plain(decode.largest.requests_per_s)}",
            value=rate / decode.largest.requests_per_s,
            unit="",
        ),
        *handover_lines(pools),
    ]


def read_line(pools: Pools) -> Line:
    """How often a prefill copy is done with a prompt."""
    layout, times = pools.prefill.layout, pools.prefill.times
    own = f"({plain(times.prompt_s)} - {plain(times.shared_prompt_s)})"
    sum_of_both = f"{plain(times.shared_prompt_s)} + {own} / {layout.dp}" if layout.dp > 1 else plain(times.prompt_s)
    return Line(
        name=f"a prefill copy is done with a prompt every, {pools.prefill.kind}",
        formula="experts and their exchanges + all else / groups" if layout.dp > 1 else "a prompt by itself",
        numbers=sum_of_both,
        value=pools.read_s,
        unit="s",
    )


def step_line(pools: Pools) -> Line:
    """A step of those who are inside a decode copy."""
    decode = pools.decode
    return Line(
        name=f"step of {units.counted(decode.inside, 'request')}, {decode.copy.kind}",
        formula="a decode step without prompts",
        numbers=plain(decode.copy.times.step_s(decode.inside)),
        value=decode.copy.times.step_s(decode.inside),
        unit="s",
    )


def handover_lines(pools: Pools) -> list[Line]:
    """A prompt's cache on its way from one pool to the other."""
    handover = pools.handover
    return [
        Line(
            name="a prompt's cache",
            formula="tokens × bytes of a token, in all layers",
            numbers=plain(handover.cache_bytes),
            value=handover.cache_bytes,
            unit="B",
            binary=True,
        ),
        Line(
            name=f"handed over in ({handover.link})",
            formula="cache / (GPUs of the smaller group × one-way rate of a link)",
            numbers=f"{plain(handover.cache_bytes)} / ({handover.links} × {plain(handover.bytes_per_s)})",
            value=handover.seconds,
            unit="s",
        ),
    ]


def _reasons(served: Served, pools: Pools, mixed: Fleet | None) -> list[tuple[str, str]]:
    found = []
    if mixed is None:
        found.append(("copies that do both", "no number of them keeps these promises."))
    elif mixed.copy.kind == pools.decode.copy.kind:
        fewer = "; two pools pay here" if pools.gpus < mixed.gpus else "; two pools do not pay here"
        both = f"{units.counted(mixed.gpus, 'GPU')} in copies of {mixed.copy.layout.gpus} that do both would do"
        said = f"{both}, simulated with the engine's usual steps{fewer}."
        found.append(("copies that do both", said))
    return found + flags_said(served, pools)


def flags_said(served: Served, pools: Pools) -> list[tuple[str, str]]:
    """The lines that start an engine of each pool."""
    reads = replace(pools.decode, copy=pools.prefill, limits=prefill_limits(served, pools.prefill))
    prefill, decode = pool_flags(served.engine)
    return [
        (
            f"in {served.engine}'s flags, prefill",
            engine_line(reading(served, pools.prefill.layout.dp), reads) + prefill,
        ),
        (f"in {served.engine}'s flags, decode", engine_line(served, pools.decode) + decode),
    ]


def _both(seconds: tuple[float, float]) -> str:
    return " and ".join(map(units.fmt_seconds, seconds))


def _data(pools: Pools, mixed: Fleet | None) -> dict[str, object]:
    layout = pools.prefill.layout
    return {
        "num_gpus": pools.gpus,
        "num_gpus_of_copies_that_do_both": mixed.gpus if mixed else None,
        "prefill": {"tp": layout.tp, "dp": layout.dp, "copies": pools.copies, "num_gpus": pools.prefill_gpus},
        "decode": {
            name: value for name, value in fleet_data(pools.decode).items() if not OF_PROMPTS & {*name.split("_")}
        },
        "ttft_p50_s": pools.ttft_s[0],
        "ttft_p99_s": pools.ttft_s[1],
        "tpot_p50_s": pools.decode.seen.tpot_s[0],
        "tpot_p99_s": pools.decode.seen.tpot_s[1],
        "prompt_cache_bytes": pools.handover.cache_bytes,
        "handover_s": pools.handover.seconds,
    }
