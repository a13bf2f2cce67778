"""Request life: one request on a time line, from its arrival to its last token, with the times that it is judged by.

>>> from threeloops.simulate.product_loop.serving_requests import Moments, Request
>>> one = Moments(place=0, request=Request(0.0, 900, 3))
>>> one.admitted_s, one.first_token_s, one.finished_s, one.token_s = 0.2, 0.5, 0.9, [0.5, 0.6, 0.9]
>>> print(request_life(one, title="A life", caption="Three tokens.").alt)
The request waits 200 ms for a slot, its prompt is read in 300 ms: TTFT 500 ms. 3 tokens, gaps (ITL) between 100 and \
300 ms, TPOT 200 ms; the last token comes after 900 ms.
"""

from typing import Any

from threeloops.figures import look
from threeloops.figures.channels import layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.simulate.product_loop.serving_requests import Moments
from threeloops.units import fmt_seconds, ms

STAGES = {"waits for a slot": look.ORANGE, "prefill": look.BLUE, "decode": look.GREEN}
ROW, TICK = 34, 20  # pixels
LIFE, SPANS = 0.5, {"TTFT": 1.5, "tokens": 2.5, "end to end": 3.5}


def request_life(moments: Moments, *, title: str, caption: str) -> Figure:
    """Stages above, the spans that clients measure below; each token is a stroke."""
    begin = moments.request.arrival_s
    ends = [begin, moments.admitted_s, moments.first_token_s, moments.finished_s]
    at = [(end - begin) / ms for end in ends]
    stages = [{"from": at[place], "to": at[place + 1], "stage": stage, "y": LIFE} for place, stage in enumerate(STAGES)]
    spans = [{"from": 0.0, "to": at[2], "y": SPANS["TTFT"]}, {"from": 0.0, "to": at[3], "y": SPANS["end to end"]}]
    strokes = [{"at": (token - begin) / ms, "y": SPANS["tokens"]} for token in moments.token_s]
    return Figure(title=title, caption=caption, alt=_words(moments), body=_body(stages, spans, strokes))


def _words(moments: Moments) -> str:
    gaps = moments.gaps_s
    return (
        f"The request waits {fmt_seconds(moments.waited_s)} for a slot, its prompt is read in"
        f" {fmt_seconds(moments.first_token_s - moments.admitted_s)}: TTFT {fmt_seconds(moments.ttft_s)}."
        f" {len(moments.token_s)} tokens, gaps (ITL) between {min(gaps) / ms:.3g} and {max(gaps) / ms:.3g} ms, TPOT"
        f" {fmt_seconds(moments.tpot_s)}; the last token comes after {fmt_seconds(moments.request_s)}."
    )


def _body(stages: list[dict[str, Any]], spans: list[dict[str, Any]], strokes: list[dict[str, Any]]) -> dict[str, Any]:
    rows = {"life of the request": LIFE, **SPANS}
    y = quantitative(
        "y",
        scale={"domain": [0, len(rows)], "reverse": True, "nice": False},
        axis={
            "values": list(rows.values()),
            "labelExpr": f"{list(rows)}[indexof({list(rows.values())}, datum.value)]",
            "title": None,
            "ticks": False,
            "domain": False,
            "grid": False,
        },
    )
    x = quantitative(
        "from", scale={"nice": False}, axis={"title": "time since arrival (ms)", "grid": False, "tickCount": 6}
    )
    colour = nominal("stage", scale={"domain": list(STAGES), "range": list(STAGES.values())})
    return {
        "width": look.PLOT_WIDTH - 60,
        "height": ROW * len(rows),
        "layer": [
            layer({"type": "bar", "height": TICK}, stages, x=x, x2="to", y=y, color=colour),
            layer({"type": "rule", "strokeWidth": 2, "color": look.INK, "aria": False}, spans, x=x, x2="to", y=y),
            layer(
                {"type": "tick", "orient": "vertical", "size": 14, "thickness": 2, "color": look.INK},
                [{"at": span[end], "y": span["y"]} for span in spans for end in ("from", "to")],
                x=quantitative("at"),
                y=y,
            ),
            layer(
                {"type": "tick", "orient": "vertical", "size": TICK, "thickness": 2, "color": look.GREEN},
                strokes,
                x=quantitative("at"),
                y=y,
            ),
        ],
    }
