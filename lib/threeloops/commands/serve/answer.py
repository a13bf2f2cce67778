"""Answer: from flags to how many GPUs a load needs, or to what users see of given GPUs."""

import argparse
import contextlib
import math
from collections.abc import Callable
from typing import TypeVar

from threeloops import units
from threeloops.commands.serve.advice import more_copies, reasons
from threeloops.commands.serve.asked import asked_for
from threeloops.commands.serve.assumed import SEAT_IN_TTFT, assumed, inputs_said, title
from threeloops.commands.serve.copies import ONE_NODE, TP, Served, longest_request
from threeloops.commands.serve.fleets import Fleet, for_rate, for_users
from threeloops.commands.serve.in_time import goodput_lines, longest_said
from threeloops.commands.serve.lines import copy_lines, fleet_data, money_lines
from threeloops.commands.serve.pool_answer import pools_working
from threeloops.commands.serve.pool_users import split_working
from threeloops.commands.serve.pools import Pools, pools_for, splits_for
from threeloops.commands.serve.tables import RATE_HEAD, USERS_HEAD, rate_row, users_row, with_groups
from threeloops.commands.working import Line, Working, plain

Found = TypeVar("Found", Fleet, Pools, list[Pools])
SOURCES = (
    "Williams, Waterman, Patterson, 2009, doi:10.1145/1498765.1498785 (bounds)",
    "Kwon et al., 2023, arXiv:2309.06180 (caches in blocks)",
    "Agrawal et al., Sarathi-Serve, 2024, arXiv:2403.02310 (prompts in chunks)",
    "vLLM, docs/serving/context_parallel_deployment.md (copies of a cache)",
    "vLLM, engine/arg_utils.py, get_batch_defaults (tokens and requests of a step)",
    "Hu et al., LoRA, 2021, arXiv:2106.09685; vLLM, config/lora.py (adapters, and ranks kept for them); PEFT, developer"
    " guide “LoRA”, section “Activated LoRA (aLoRA)”; SGLang, pull request 32708, 2026 (adapters under DP attention)",
)


def from_flags(given: argparse.Namespace) -> Working:
    """The calculation that the flags ask for."""
    if (given.rate is None) == (given.users is None):
        both = ", not both" if given.rate is not None else ""
        raise ValueError(f"say the load: requests as they come (--rate 50/s) or people at a time (--users 64){both}")
    served = asked_for(given)
    if not (served.part.peaks or served.part.engines):
        raise ValueError(
            f"of {served.part.name} only the memory is known, no rates: `threeloops kv` and `threeloops fit` answer"
        )
    if not served.part.peaks:
        raise ValueError(
            f"{served.part.name} has several engines and power modes, and serve counts one; take a step apart with"
            " `threeloops roofline --engine gpu --power-mode maxn`"
        )
    _no_half_pools(given)
    if given.rate is not None:
        if not served.promised_s:
            raise ValueError("a rate needs a promise to be kept: --ttft 500ms, --itl 40ms or --tpot 40ms")
        return _for_rate(served, given) if given.prefill_tp is None else _for_pools(served, given)
    if given.gpus is None:
        raise ValueError(
            "--users needs the GPUs that they share, for example --gpus 8; how many a load needs says --rate"
        )
    return _for_users(served, given) if given.prefill_tp is None else _for_split(served, given)


def _no_half_pools(given: argparse.Namespace) -> None:
    """Raises:   ValueError where pools are asked for in part, or for what is not counted of them"""
    if given.prefill_tp is None and (given.link or given.bandwidth or given.prefill_dp > 1):
        raise ValueError("two pools need --prefill-tp: the GPUs of each group that reads prompts")
    if given.prefill_tp is not None and given.pp > 1:
        raise ValueError("two pools are counted without stages: leave out --pp, or --prefill-tp")
    if given.prefill_tp is not None and bool(given.link) == bool(given.bandwidth):
        raise ValueError(
            "say what a prompt's cache goes over to the GPUs that decode: the link of each GPU by name (--link"
            " infiniband-ndr) or its one-way rate (--bandwidth 50GB/s)"
        )


def _for_pools(served: Served, given: argparse.Namespace) -> Working:
    pools, lost = _tried(given, lambda tp: pools_for(served, tp, given))
    mixed = _doing_both(served, given)
    assumes = assumed(served, pools[0].decode)
    return pools_working(
        served, pools, mixed, given, title=title(served), inputs=inputs_said(served), assumes=assumes, lost=lost
    )


def _doing_both(served: Served, given: argparse.Namespace) -> Fleet | None:
    """The fewest GPUs in copies that read and decode; degrees that take more than others are left early."""
    found: list[Fleet] = []
    for tp in reversed(_degrees(given)):
        fewest = min((fleet.gpus for fleet in found if fleet.copy.expected), default=math.inf)
        with contextlib.suppress(ValueError):
            found.append(for_rate(served, tp, given.rate, at_most=fewest))
    return min(_of_one_kind(found), key=lambda fleet: (fleet.gpus, fleet.copy.layout.tp), default=None)


def _for_split(served: Served, given: argparse.Namespace) -> Working:
    tried, lost = _tried(given, lambda tp: splits_for(served, tp, given))
    try:
        fleets = _tried(given, lambda tp: for_users(served, tp, gpus=given.gpus, users=given.users))[0]
        mixed: Fleet | None = _most_useful(served, fleets)
    except ValueError:
        mixed = None
    assumes = tuple(one for one in assumed(served, tried[0][0].decode) if one != SEAT_IN_TTFT)
    return split_working(
        served, tried, mixed, given, title=title(served), inputs=inputs_said(served), assumes=assumes, lost=lost
    )


def _most_useful(served: Served, fleets: list[Fleet]) -> Fleet:
    return max(_of_one_kind(fleets), key=lambda fleet: (fleet.keeps(served), fleet.tokens_per_s))


def _degrees(given: argparse.Namespace) -> list[int]:
    """Of tensor parallelism, those that are tried: of one node, or of fewer GPUs."""
    if given.tp is not None:
        return [given.tp]
    return [tp for tp in TP if tp * given.dp <= min(ONE_NODE, (given.gpus or math.inf) // given.pp)]


def _tried(given: argparse.Namespace, one: Callable[[int], Found]) -> tuple[list[Found], list[tuple[str, str]]]:
    """A fleet of each tensor group, and why there is none of the others."""
    if given.tp is not None:
        try:
            return [one(given.tp)], []
        except ValueError as error:
            raise ValueError(f"{error}; without --tp every degree is tried") from error
    fleets, lost = [], []
    for tp in _degrees(given):
        try:
            fleets.append(one(tp))
        except ValueError as error:
            lost.append((f"tp {tp}", f"{error}."))
    if not fleets and not lost and given.pp > 1:
        raise ValueError(f"--pp {given.pp}: as many stages need as many GPUs, and --gpus has {given.gpus}")
    if not fleets and not lost:
        most = min(ONE_NODE, given.gpus or ONE_NODE)
        raise ValueError(f"--dp {given.dp}: as many groups need as many GPUs, and a node, or --gpus, has {most}")
    if not fleets:
        whys = list(dict.fromkeys(why for _, why in lost))
        cures = {why.rstrip(".").rpartition("; ")[2] for why in whys}  # said once where it is the same
        cure = f"; {cures.pop()}" if len(whys) > 1 == len(cures) else ""
        named = ((", ".join(name for name, same in lost if same == why), why.rstrip(".")) for why in whys)
        said = (f"{name}: {why.removesuffix(cure)}" if len(whys) > 1 else why for name, why in named)
        raise ValueError("; ".join(said) + cure)
    return fleets, lost


def _for_rate(served: Served, given: argparse.Namespace) -> Working:
    fleets, lost = _tried(given, lambda tp: for_rate(served, tp, given.rate))
    best = min(_of_one_kind(fleets), key=lambda fleet: (fleet.gpus, fleet.copy.layout.tp))
    assert best.largest is not None
    lines = [
        *copy_lines(served, best),
        Line(
            name="copies, before rounding up",
            formula="rate / the largest simulated rate of one copy that keeps the promises",
            numbers=f"{plain(given.rate)} / {plain(best.largest.requests_per_s)}",
            value=given.rate / best.largest.requests_per_s,
            unit="",
        ),
        *goodput_lines(served, best, given.rate, kind=best.copy.kind),
        *money_lines(served.part, best.gpus, best.tokens_per_s, given.price),
    ]
    limit = f"; --gpus {given.gpus} are too few" if given.gpus is not None and best.gpus > given.gpus else ""
    return Working(
        title=title(served),
        inputs=inputs_said(served) | {"load": f"{given.rate:g} requests/s"},
        table=(with_groups(RATE_HEAD, fleets), *map(rate_row, fleets)),
        lines=tuple(lines),
        reasons=(*lost, *more_copies(best, given.rate), longest_said(served, best), *reasons(served, best)),
        conclusion=(
            f"It takes {'' if best.copy.expected else 'at least '}{units.counted(best.gpus, 'GPU')} for"
            f" {given.rate:g} requests/s, each copy on {best.copy.layout.gpus}{_groups_said(best)}"
            f" ({_kind(best)}; {_with_drafts(served)} at least {min(fleet.at_least or 0 for fleet in fleets)}):"
            f" {_times(best)}{limit}.{_too_long(served)}"
        ),
        assumes=assumed(served, best),
        sources=SOURCES,
        data=fleet_data(best) | {"layouts": [fleet_data(fleet) for fleet in fleets]},
    )


def _for_users(served: Served, given: argparse.Namespace) -> Working:
    fleets, lost = _tried(given, lambda tp: for_users(served, tp, gpus=given.gpus, users=given.users))
    best = _most_useful(served, fleets)
    seats = best.copies * best.limits.max_num_seqs
    wait = f" Only {seats} {'have' if seats > 1 else 'has'} a seat: other requests wait" if best.waiting_s else ""
    wait += f" {units.fmt_seconds(best.waiting_s)} for one on average." if best.waiting_s else ""
    return Working(
        title=title(served),
        inputs=inputs_said(served) | {"load": f"{units.counted(given.users, 'user')}, each asking again at once"},
        table=(with_groups(USERS_HEAD, fleets), *map(users_row, fleets)),
        lines=(
            *copy_lines(served, best),
            *goodput_lines(served, best, kind=best.copy.kind),
            *money_lines(served.part, best.gpus, best.tokens_per_s, given.price),
        ),
        reasons=(*lost, longest_said(served, best), *reasons(served, best)),
        conclusion=(
            f"{units.counted(given.users, 'user')} on {units.counted(given.gpus, 'GPU')}, {_kind(best)}, with tp"
            f" {best.copy.layout.tp}{_groups_said(best)}: {_times(best)}; {'' if best.copy.expected else 'at most '}"
            f"{best.tokens_per_s / given.gpus:,.0f} tokens/s per GPU.{wait}{_kept(served, best)}{_too_long(served)}"
        ),
        assumes=assumed(served, best),
        sources=SOURCES,
        data=fleet_data(best) | {"layouts": [fleet_data(fleet) for fleet in fleets]},
    )


def _too_long(served: Served) -> str:
    """Where the longest requests go beyond what the model was made for."""
    longest, limit = longest_request(served), served.model.max_context
    if longest <= limit:
        return ""
    return f" The longest requests have {longest:,} tokens, and {served.model.name} was made for {limit:,}."


def _groups_said(fleet: Fleet) -> str:
    layout = fleet.copy.layout
    if layout.pp > 1:
        return f" in {layout.pp} stages"
    return f" in {layout.dp} groups" if layout.dp > 1 else ""


def _with_drafts(served: Served) -> str:
    return "with these drafts" if served.drafts else "without drafts"


def _of_one_kind(fleets: list[Fleet]) -> list[Fleet]:
    """Those with expected times, if there are any: a bound is not held against them."""
    return [fleet for fleet in fleets if fleet.copy.expected] or fleets


def _kind(fleet: Fleet) -> str:
    return "by expected times" if fleet.copy.expected else "by bounds alone, which no engine reaches"


def _times(fleet: Fleet) -> str:
    seen, least = fleet.seen, "" if fleet.copy.expected else "at least "
    return (
        f"TTFT {least}{_both(seen.ttft_s)}, ITL {least}{_both(seen.itl_s)}, TPOT {least}{_both(seen.tpot_s)} at median"
        " and p99"
    )


def _kept(served: Served, fleet: Fleet) -> str:
    if not served.promised_s:
        return ""
    if fleet.copy.expected:
        return f" The promises are {'kept' if fleet.keeps(served) else 'not kept'}."
    if fleet.keeps(served):
        return " The bounds keep the promises; that says of no engine that it does."
    return " Not even the bounds keep the promises, so no engine does."


def _both(seconds: tuple[float, float]) -> str:
    return " and ".join(map(units.fmt_seconds, seconds))
