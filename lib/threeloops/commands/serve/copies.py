"""Copies: one copy of a model on its GPUs, as it is asked for: its layout, whom it seats, how long its steps take."""

import math
from dataclasses import dataclass, replace
from typing import Any

from threeloops import checks, units
from threeloops.facts.hardware import Part
from threeloops.facts.kernel_times import timed_parts
from threeloops.models.architecture import Model
from threeloops.product_loop.sizing.adapter_times import ServedAdapters
from threeloops.product_loop.sizing.drafted_steps import Drafts, drafted_times
from threeloops.product_loop.sizing.engine_limits import Promises, engine_defaults
from threeloops.product_loop.sizing.request_lengths import RequestLengths
from threeloops.product_loop.sizing.request_times import RequestTimes, bound_times, expected_times
from threeloops.product_loop.sizing.served_layout import ServedLayout
from threeloops.product_loop.sizing.staged_times import Stages, staged_times
from threeloops.simulate.product_loop.sizing.replica_runs import SPREAD

TP = (1, 2, 4, 8)  # GPUs of a copy: all inside a node
ONE_NODE = 8  # GPUs


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What is served, where, and what is promised."""

    model: Model
    part: Part
    weights: str
    cache: str
    engine: str
    ep: int | None  # GPUs with different experts; None: all of a copy where they have requests of their own, else none
    dcp: int  # GPUs of a group that share the tokens of a cache instead of keeping copies
    stages: Stages | None  # of a copy, on nodes of their own
    dp: int  # groups of a copy with requests, attention and caches of their own
    drafts: Drafts | None
    adapters: ServedAdapters | None
    lengths: RequestLengths
    traced: str  # the key of the trace whose lengths these are, or ""
    promised: Promises
    memory_utilisation: float
    other_bytes: float  # of each GPU
    watermark: float = 0.0  # of the blocks, those that stay free

    @property
    def pp(self) -> int:
        return self.stages.number if self.stages else 1

    @property
    def yielded(self) -> float:
        """Tokens of an answer that one step makes of each request, on average."""
        return self.drafts.yielded if self.drafts else 1.0

    @property
    def in_steps(self) -> RequestLengths:
        """Lengths with the steps of an answer instead of its tokens."""
        if not self.drafts:
            return self.lengths
        drawn = tuple((prompt, self.drafts.checks_of(answer)) for prompt, answer in self.lengths.drawn)
        return replace(self.lengths, answer=self.drafts.checks_of(self.lengths.answer), drawn=drawn)

    @property
    def promised_steps(self) -> Promises:
        """Promises on steps: a token's mean gap is a step's over what it makes."""
        tpot_s = self.promised.tpot_s
        return self.promised if tpot_s is None else replace(self.promised, tpot_s=tpot_s * self.yielded)

    def experts_over(self, layout: ServedLayout) -> int:
        """How many GPUs of a copy hold different experts."""
        return self.ep or (layout.stage_gpus if layout.dp > 1 else 1)

    @property
    def promised_s(self) -> dict[str, float]:
        return self._named(self.promised)

    @property
    def promised_steps_s(self) -> dict[str, float]:
        return self._named(self.promised_steps)

    def _named(self, promised: Promises) -> dict[str, float]:
        given = {"ttft": promised.ttft_s, "itl": promised.itl_s, "tpot": promised.tpot_s}
        return {name: seconds for name, seconds in given.items() if seconds is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One copy of the model: its layout and how long its steps take."""

    layout: ServedLayout
    seats: int
    bound: RequestTimes
    expected: RequestTimes | None
    why_not: str  # why nothing is expected, or ""

    @property
    def kind(self) -> str:
        """Which times are simulated."""
        return "expected" if self.expected else "bounds"

    @property
    def times(self) -> RequestTimes:
        """What is simulated: the expected times, or where there are none the bounds."""
        return self.expected or self.bound


def copy_of(served: Served, tp: int) -> Copy:
    """A copy on so many GPUs.

    Raises:   ValueError where the weights, or a single request, do not fit
    """
    layout = ServedLayout(
        model=served.model,
        part=served.part,
        weights=served.weights,
        cache=served.cache,
        tp=tp,
        dp=served.dp,
        ep=served.ep or (tp * served.dp if served.dp > 1 else 1),
        pp=served.pp,
        dcp=served.dcp,
        memory_utilisation=served.memory_utilisation,
        other_bytes=served.other_bytes,
        watermark=served.watermark,
        adapters=served.adapters,
    )
    _fits(served, layout)
    _fit_one(served, layout)
    seats = min(served.dp * engine_defaults(served.part).max_num_seqs, layout.seats(served.lengths.mean_end))
    expected, why_not, ep = None, "", served.experts_over(layout)
    batch = math.ceil(seats / layout.pp)
    given: dict[str, Any] = {"most": batch, "engine": served.engine, "ep": ep}
    try:
        expected = expected_times(layout, served.lengths, **given)
        if served.drafts:
            checking = expected_times(layout, served.lengths, **given, checked=served.drafts.checked)
            expected = drafted_times(expected, checking, served.drafts)
    except ValueError as error:
        why_not = (
            str(error)
            if served.part.key in timed_parts()
            else f"no timed kernels of {served.part.name} are known for it"
        )
    bound = bound_times(layout, served.lengths, most=batch)
    if served.drafts:
        checking = bound_times(layout, served.lengths, most=seats, checked=served.drafts.checked)
        bound = drafted_times(bound, checking, served.drafts)
    if served.stages:
        cut: dict[str, Any] = {"hidden": served.model.hidden, "tp": tp, "num_layers": served.model.num_layers}
        bound = staged_times(bound, served.stages, **cut, most=seats, real=False)
        expected = expected and staged_times(expected, served.stages, **cut, most=seats, real=True)
    return Copy(layout=layout, seats=seats, bound=bound, expected=expected, why_not=why_not)


def _fits(served: Served, layout: ServedLayout) -> None:
    if served.stages:
        _stages_alone(served)
    ep, whole = served.experts_over(layout), "tp" if layout.dp == 1 else "tp * dp"
    checks.divides(part="ep", part_value=ep, whole=whole, whole_value=layout.stage_gpus)
    if layout.dp > 1 and layout.stage_gpus > ONE_NODE:
        raise ValueError(f"dp={layout.dp} groups of {layout.tp} are more than the {ONE_NODE} GPUs of a node")
    if served.engine == "vLLM" and ep not in (1, layout.stage_gpus):
        raise ValueError(f"ep={ep}: vLLM spreads experts over all {layout.stage_gpus} GPUs of a copy or over none")
    if served.engine == "TensorRT-LLM" and layout.dp > 1 < layout.tp:
        raise ValueError(f"tp={layout.tp}: in TensorRT-LLM every GPU has requests of its own, or none; take --tp 1")
    if layout.dp > 1 and served.adapters and served.engine != "SGLang":
        raise ValueError(
            f"dp={layout.dp}: adapters for groups with requests of their own are SGLang's; --engine sglang"
        )
    if ep > 1 and not layout.has_experts:
        raise ValueError(f"ep={ep} spreads experts, and {served.model.name} has none")
    needed = layout.weights_bytes + layout.adapters_bytes + served.other_bytes
    usable = served.memory_utilisation * served.part.capacity_bytes()
    if needed >= usable:
        raise ValueError(
            f"{'weights, adapters' if served.adapters else 'weights'}, activations and buffers take"
            f" {units.fmt_bytes(needed, base=2)} of each GPU, and"
            f" {units.fmt_bytes(usable, base=2)} may be used; a larger --tp or --weights of fewer bits may do"
        )


def _stages_alone(served: Served) -> None:
    """Raises:   ValueError for what is not counted beside stages"""
    if served.engine == "TensorRT-LLM":
        raise ValueError(
            f"pp={served.pp}: batches in stages are counted as vLLM and SGLang have them; take one of these"
        )
    if served.dp > 1 or served.dcp > 1 or served.drafts:
        raise ValueError(f"pp={served.pp} is counted without --dp, --dcp and drafts: leave them out, or --pp")


def _fit_one(served: Served, layout: ServedLayout) -> None:
    """Whether the longest request has room by itself: an engine that is told of it refuses to start otherwise."""
    longest = min(longest_request(served), served.model.max_context)
    if not layout.seats(longest):
        raise ValueError(
            f"no room for one request of {longest:,} tokens beside the weights, only for {layout.longest_context():,}"
        )


def longest_request(served: Served) -> int:
    """Tokens of the longest requests that are simulated."""
    lengths = served.lengths
    return lengths.most if lengths.drawn else round((1 + SPREAD) * lengths.most)
