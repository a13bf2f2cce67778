"""`threeloops measured served`: how far expected times between two tokens are from servers that others measured."""

from collections.abc import Sequence
from math import inf
from statistics import median

from threeloops.commands.working import aligned
from threeloops.facts.engine_exchanges import engine_exchanges_source
from threeloops.facts.served_points import served_sources
from threeloops.facts.served_pools import served_pools_source
from threeloops.operations.expected_times import errors_of
from threeloops.product_loop.expected.judged_points import (
    JudgedPoint,
    JudgedPools,
    judged_apart_points,
    judged_points,
    judged_pools,
    worth,
)
from threeloops.units import fmt_percent

HEAD = ("served points", "points", "over the floor", "expected", "p90", "sign", "too slow")
SIMULATED_HEAD = ("simulated", "points", "TPOT off", "p90", "sign", "of them", "TTFT off", "p90", "sign")
SIMULATED_MEANS = (
    "Every request by itself, through the simulator of chapter 3, with expected kernel times; nothing is fitted to"
    " these points. off, p90: median and ninth decile of the error's size; sign: its median with sign, above 0 where"
    " the simulation took longer. of them: points that say how many requests they had, without which it is not known"
    " how many begin at once. TTFT: means; the sources do not say whether theirs are means or medians."
)
POOLS_HEAD = ("prefill and decode apart", "points", "TPOT off", "p90", "sign", "requests/s off", "p90", "sign")
POOLS_MEANS = (
    "prefill and decode apart: some GPUs read prompts, others decode. requests/s: those at a time over the time that"
    " each is inside, measured and expected; sign above 0 where the servers were slower. A first token is not expected:"
    " how prompts waited for one another is not said; the median one took {over_prompt:.2g} times as long as its prompt"
    " by itself."
)
AT_A_TIME = ((8, "up to 8 requests at a time"), (64, "9 to 64"), (inf, "65 and more"))
ANSWERS = ((256, "answers of up to 256 tokens"), (1024, "of 500 to 1,024"), (inf, "of 2,000 and more"))
MEANS = (
    "over the floor: measured time between two tokens (TPOT) over that of reading weights and caches once, in the"
    " median. expected, p90: median and ninth decile of the error's size by measured kernels; sign: its median with"
    " sign, above 0 where servers were quicker than expected; too slow: the share that was expected to take longer"
    " than it took. Nothing is fitted to these points, but which causes are"
    " charged was decided with these errors in view; no time of the host, of sampling or of the network is charged."
)


def report() -> str:
    """The rungs from the floor to the measured time, and the errors by model, device, engine, requests and answer."""
    judged = judged_points()
    rungs = [(name, _share(added), _share(reached)) for name, added, reached in worth(judged)]
    groups: dict[tuple[int, float, str], list[JudgedPoint]] = {}
    for one in judged:
        for kind, (place, label) in enumerate(labels(one)):
            groups.setdefault((kind, place, label), []).append(one)
    rows = [_row(label, some) for (_, _, label), some in sorted(groups.items(), key=lambda item: item[0])]
    told = [f"{one.source} ({one.licence}); {one.timed}. Settings: {one.settings}." for one in served_sources()]
    told.append(f"The engines' own all-reduces: {engine_exchanges_source()}.")
    own = judged_apart_points()
    apart = [_row(name, [one for one in own if name in ("all", one.point.model)]) for name in _named(own)]
    head = ("rung", "of the measured", "reached")
    first = [one.first_error for one in judged if one.first_error is not None]
    found = errors_of(first)
    told.insert(
        0,
        f"The first token (TTFT), on {found.rows} points that say how many requests they had and seat all:"
        f" expected {fmt_percent(found.median)} off in the median, {fmt_percent(found.ninth_decile)} in the ninth"
        f" decile, sign {_signed(found.signed_median)}.",
    )
    each = ("each GPU has its own requests", *HEAD[1:])
    tables: list[list[tuple[str, ...]]] = [[HEAD, *rows], [each, *apart], _pools(), [head, *rungs]]
    pools = judged_pools()
    over_prompt = median(one.point.ttft_s / one.expected.prompt_s for one in pools)
    told.append(f"Prefill and decode apart: {served_pools_source()}")
    lines = [line for table in tables for line in (*aligned(table), "")]
    return "\n".join([*lines, MEANS, POOLS_MEANS.format(over_prompt=over_prompt), *told])


def _pools() -> list[tuple[str, ...]]:
    """Errors of the servers that read prompts on GPUs of their own."""
    groups: dict[str, list[JudgedPools]] = {}
    for one in judged_pools():
        for label in ("all", one.point.model, f"on {one.point.part}", one.point.engine):
            groups.setdefault(label, []).append(one)
    groups = {label: groups[label] for label in sorted(groups, key=lambda label: (label != "all", label))}
    return [
        POOLS_HEAD,
        *(
            (label, str(len(some)), *_errors([one.error for one in some]), *_errors([one.flow_error for one in some]))
            for label, some in groups.items()
        ),
    ]


def _named(judged: Sequence[JudgedPoint]) -> list[str]:
    return ["all", *sorted({one.point.model for one in judged})]


def simulated_report() -> str:
    """The serving simulator with expected kernel times on every served point whose caches hold all requests: errors of
    both times, by model, device, engine, requests and answer.
    """
    from threeloops.measure.product_loop.simulated_points import SimulatedPoint, simulated_points  # loads numpy

    groups: dict[tuple[int, float, str], list[SimulatedPoint]] = {}
    for one in simulated_points(every=1):
        for kind, (place, label) in enumerate(labels(one.judged)):
            groups.setdefault((kind, place, label), []).append(one)
    rows = []
    for (_, _, label), some in sorted(groups.items(), key=lambda item: item[0]):
        firsts = [one.first_error for one in some if one.first_error is not None]
        both = (*_errors([one.error for one in some]), str(len(firsts)), *_errors(firsts))
        rows.append((label, str(len(some)), *both))
    return "\n".join([*aligned([SIMULATED_HEAD, *rows]), "", SIMULATED_MEANS])


def _errors(signed: Sequence[float]) -> tuple[str, str, str]:
    if not signed:
        return ("", "", "")
    found = errors_of(signed)
    return (fmt_percent(found.median), fmt_percent(found.ninth_decile), _signed(found.signed_median))


def labels(one: JudgedPoint) -> tuple[tuple[float, str], ...]:
    """The groups that a point belongs to, one of each kind, with its place among them."""
    point = one.point
    return (
        (0, "all"),
        (0, point.model),
        (0, f"on {point.part}"),
        (0, point.engine),
        (0, f"in {point.format}"),
        (point.tp, f"on {point.tp} GPU{'s' if point.tp > 1 else ''}"),
        _first(AT_A_TIME, point.requests),
        _first(ANSWERS, point.answer),
    )


def _first(steps: Sequence[tuple[float, str]], value: int) -> tuple[float, str]:
    return next((most, label) for most, label in steps if value <= most)


def _row(what: str, some: Sequence[JudgedPoint]) -> tuple[str, ...]:
    signed = [one.error for one in some]
    found = errors_of(signed)
    return (
        what,
        str(len(some)),
        f"{median(one.over_floor for one in some):.2f}",
        fmt_percent(found.median),
        fmt_percent(found.ninth_decile),
        _signed(found.signed_median),
        fmt_percent(sum(error > 0 for error in signed) / len(signed)),
    )


def _share(share: float) -> str:
    return f"{share:.1%}".replace("%", " %")


def _signed(share: float) -> str:
    return f"{share:+.1%}".replace("%", " %")
