"""In time: how many requests keep what is promised, and how long one may be."""

from threeloops.commands.serve.copies import Served
from threeloops.commands.serve.fleets import Fleet
from threeloops.commands.working import Line, plain


def goodput_lines(served: Served, fleet: Fleet, requests_per_s: float | None = None, *, kind: str) -> list[Line]:
    """Requests a second, those of a rate or as many as are answered, that keep TTFT and TPOT, where one of them is
    promised: single gaps are no request's. `kind` of the times: "expected" or "bounds".
    """
    promised = {"ttft_s": served.promised.ttft_s, "tpot_s": served.promised.tpot_s}
    kept = {name: limit for name, limit in promised.items() if limit is not None}
    if not kept:
        return []
    share, answer = fleet.seen.in_time(**kept), served.lengths.answer
    came = "rate" if requests_per_s else "tokens of answers in a second / tokens of an answer"
    numbers = plain(requests_per_s) if requests_per_s else f"{plain(fleet.tokens_per_s)} / {answer}"
    return [
        Line(
            name=f"goodput{', at most' if kind == 'bounds' else ''}, requests in a second",
            formula=f"{came} × the share with {' and '.join(name[:-2].upper() for name in kept)} in time",
            numbers=f"{numbers} × {plain(share)}",
            value=(requests_per_s or fleet.tokens_per_s / answer) * share,
            unit="",
        )
    ]


def longest_said(served: Served, fleet: Fleet) -> tuple[str, str]:
    """What memory and model allow a single request."""
    by_memory, made_for = fleet.copy.layout.longest_context(), f"{served.model.max_context:,}"
    if by_memory is None:
        return "longest context", f"memory sets no limit; {served.model.name} was made for {made_for} tokens."
    return (
        "longest context",
        f"memory has room for one request of {by_memory:,} tokens; {served.model.name} was made for {made_for}.",
    )
