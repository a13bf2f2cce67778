"""Engine account: what limits admission by an engine's log, where its requests' time goes, and its cache beside the
formula.

>>> log = EngineRecord(engine="vLLM", seats=8)
>>> for second, (running, waiting, usage) in enumerate([(0, 0, 0), (8, 4, 0.5), (8, 8, 0.6), (3, 0, 0.2)]):
...     log.enter(at_s=10.0 * second, running=running, waiting=waiting, kv_usage=usage)
>>> [(cause, found.share) for cause, found in admission(log).items()]
[('every seat is taken', 0.5), ('nothing was asked', 0.25), ('all that came were admitted', 0.25)]
>>> round(admission(log)["every seat is taken"].factor, 3)  # 1.5 and, for want of more room, 1 / 0.6
1.583
"""

import math
import statistics
from collections import defaultdict
from dataclasses import dataclass

from threeloops.facts.hardware import Part
from threeloops.models.architecture import Attention, Model, MoeMlp, Recurrent
from threeloops.models.model_flops import forward_flops
from threeloops.models.utilisation import mfu
from threeloops.product_loop.decode_floor import tensor_parallel_step_s
from threeloops.product_loop.kv_cache import bytes_per_token
from threeloops.product_loop.kv_quantisation import CacheFormat
from threeloops.product_loop.logged.engine_record import EngineRecord

FULL = 0.9  # of the cache in use, while somebody waits: it holds nobody else
SILENT = 3  # times the usual distance of two moments: in between the engine wrote nothing
SEATS, CACHE, OTHER = "every seat is taken", "the cache is full", "there is room, and still some wait"
ADMITTED, IDLE = "all that came were admitted", "nothing was asked"
DEFERRED = "all that wait are deferred"  # for what is no seat and no room in the cache
LIMITED = (SEATS, CACHE, OTHER)
SOME_WAIT = (*LIMITED, DEFERRED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """One reason why no more requests ran, or none."""

    share: float  # of the logged time
    factor: float | None  # as many requests, at most, as ran then, if all that waited could; None where nobody waited
    running: float  # in the mean
    waiting: float


def admission(log: EngineRecord) -> dict[str, Admission]:
    """What limited the requests that ran, by moments, largest share first.

    Formula:  a moment counts for the time since the one before of the same engine. A request waits and all seats are
              taken: the seats; else, one waits and at least 0.9 of the cache is in use, or one more like those that run
              would not fit (use × (running + 1) / running > 1): the cache; one waits otherwise: the log does not say.
              Where all that wait are deferred, that counts by itself. factor: (running + waiting) / running in the
              mean, and for seats no more than the cache has room for, 1 / its use
    Units:    shares of the logged time, 0 to 1
    Assumes:  a moment's figures hold since the one before; a pause of more than three usual distances is silence and
              counts as one of them; moments without stamps are equally long
    Source:   by definition
    Counted:  tests.product_loop.test_engine_logs.test_shares_of_admission_are_what_the_simulator_did
    """
    weights = _weights(log)
    seconds, rows = defaultdict[str, float](float), defaultdict[str, list[tuple[float, float, float, float]]](list)
    for place, weight in enumerate(weights):
        running, waiting, usage = (log.columns[name][place] for name in ("running", "waiting", "kv_usage"))
        cause = _cause(running, waiting, usage, log.seats)
        if cause in (ADMITTED, IDLE) and log.columns["deferred"][place] > 0:  # False where it is not stated
            cause, waiting = DEFERRED, log.columns["deferred"][place]
        if cause:
            seconds[cause] += weight
            rows[cause].append((weight, running, waiting, usage))
    total = sum(seconds.values())
    found = {
        cause: Admission(
            share=seconds[cause] / total,
            factor=_factor(rows[cause], seats=cause == SEATS) if cause in LIMITED else None,
            running=_mean(rows[cause], 1),
            waiting=_mean(rows[cause], 2),
        )
        for cause in seconds
        if total
    }
    return dict(sorted(found.items(), key=lambda item: -item[1].share))


def _cause(running: float, waiting: float, usage: float, seats: int | None) -> str:
    if math.isnan(running) or math.isnan(waiting):
        return ""
    if not waiting:
        return ADMITTED if running else IDLE
    if seats and running >= seats:
        return SEATS
    no_room = usage >= FULL or (running > 0 and usage * (running + 1) / running > 1)  # False for an unknown use
    return CACHE if no_room else OTHER


def _mean(rows: list[tuple[float, float, float, float]], column: int) -> float:
    total = sum(row[0] for row in rows)
    return sum(row[0] * row[column] for row in rows) / total if total else 0.0


def _factor(rows: list[tuple[float, float, float, float]], *, seats: bool) -> float | None:
    weighted = [
        (weight, min((running + waiting) / running, 1 / usage if seats and usage > 0 else math.inf))
        for weight, running, waiting, usage in rows
        if running > 0
    ]
    total = sum(weight for weight, _ in weighted)
    return sum(weight * factor for weight, factor in weighted) / total if total else None


def _weights(log: EngineRecord) -> list[float]:
    """Seconds that each moment stands for; all equal where they carry no stamps."""
    before: dict[float, float] = {}
    gaps: list[float | None] = []
    for at, rank in zip(log.columns["at_s"], log.columns["rank"], strict=True):
        gap = at - before[rank] if rank in before else math.nan
        gaps.append(gap if gap >= 0 else None)  # nan, too, is no gap
        before[rank] = at
    known = [gap for gap in gaps if gap]
    if not known:
        return [1.0] * len(gaps)
    usual = statistics.median(known)
    return [usual if gap is None or gap > SILENT * usual else gap for gap in gaps]


def logged_s(log: EngineRecord) -> float | None:
    """Seconds that the moments stand for, silence left out; None without stamps."""
    stamped = [at for at in log.columns["at_s"] if not math.isnan(at)]
    return sum(_weights(log)) if len(set(stamped)) > 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheCheck:
    """The cache that an engine states, beside the formula."""

    tokens: int
    stated_bytes: float | None  # of one GPU
    formula_bytes: float


def cache_beside_formula(log: EngineRecord, model: Model, *, cache: CacheFormat, tp: int) -> CacheCheck | str:
    """Tokens that the engine's cache holds × bytes of a token by the formula, beside the bytes that it states; or a
    sentence that says why the two are not held together.

    Formula:  kv_tokens * bytes_per_token(model, tp)
    Source:   vLLM, v1/core/kv_cache_utils.py, get_num_blocks and _report_kv_cache_config; SGLang,
              model_executor/model_runner.py; llama.cpp, src/llama-kv-cache.cpp
    Counted:  tests.product_loop.test_engine_logs.test_the_cache_of_published_logs
    """
    if not log.kv_tokens:
        return "the log states no size of the cache in tokens"
    if any(
        isinstance(layer.attention, Recurrent) or (isinstance(layer.attention, Attention) and layer.attention.window)
        for layer, _ in model.groups
    ):
        return f"{model.name} has layers with windows or states, which engines deal to pools of their own"
    each = bytes_per_token(model, bytes_per_element=cache.bytes_per_element, quantisation=cache.quantisation, tp=tp)
    return CacheCheck(tokens=log.kv_tokens, stated_bytes=log.kv_bytes, formula_bytes=log.kv_tokens * each)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast tokens come, beside what must be."""

    step_s: float  # from one token of a request to its next, in the mean, with the prompts of others in it
    running: float
    floor_s: float | None  # of a decode step: all weights and the caches in use, read once
    mfu: float | None  # of the time in which something ran


def pace(
    log: EngineRecord,
    *,
    model: Model | None,
    part: Part | None,
    weights_bytes: float | None,
    cache: CacheFormat | None,
    dtype: str,
    tp: int,
) -> Pace | None:
    """The time between two tokens by the log, and its floor where the model and the device are known; None where the
    log states no output. Of requests' own times where there are no periodic figures: seconds from their first tokens
    to their last, over the tokens of that time.

    Formula:  running / output tokens per second, both in the mean; floor: tensor_parallel_step_s without exchanges;
              mfu: (computed prompt tokens + output tokens) per second * FLOPs of a token / (tp * peak)
    Units:    weights_bytes of all GPUs together; FLOPs of a token: 2 for each weight that multiplies it
    Assumes:  each running request gets a token a step (no drafts); attention's FLOPs are left out, which makes the MFU
              a lower one; no floor for experts, of which a step reads those that its tokens chose
    Source:   Little, 1961, doi:10.1287/opre.9.3.383; Pope et al., 2022, arXiv:2211.05102
    Counted:  tests.product_loop.test_engine_logs.test_the_pace_is_that_of_the_simulated_steps
    """  # fmt: skip
    rows = [
        (running, output, prompt, usage)
        for running, output, prompt, usage in zip(
            *(log.columns[name] for name in ("running", "output_per_s", "prompt_per_s", "kv_usage")), strict=True
        )
        if running > 0 and output > 0
    ]
    if not rows:
        return _timed_pace(log, model, part, weights_bytes, cache, tp)
    running, output = (sum(row[place] for row in rows) / len(rows) for place in (0, 1))
    prompts = [row[2] for row in rows if not math.isnan(row[2])]
    usages = [row[3] for row in rows if not math.isnan(row[3])]
    floor = share = None
    if model and part and not part.engines:
        floor = _floor_s(log, model, part, weights_bytes, cache, tp, usages)
        share = _share(log, model, part, dtype, tp, output, prompts)
    return Pace(step_s=running / output, running=running, floor_s=floor, mfu=share)


def _timed_pace(
    log: EngineRecord,
    model: Model | None,
    part: Part | None,
    weights_bytes: float | None,
    cache: CacheFormat | None,
    tp: int,
) -> Pace | None:
    """By requests' own times: what lies between their first token and their last, over the tokens of that time."""
    tokens = log.tokens["output"] - (log.requests or 0.0)
    if "answer" not in log.stages or tokens <= 0:
        return None
    usages = [value for value in log.columns["kv_usage"] if not math.isnan(value)]
    known = model is not None and part is not None and not part.engines
    return Pace(
        step_s=log.stages["answer"] / tokens,
        running=log.mean("running") or 1.0,
        floor_s=_floor_s(log, model, part, weights_bytes, cache, tp, usages) if known else None,
        mfu=None,
    )


def _floor_s(
    log: EngineRecord, model: Model | None, part: Part | None, weights_bytes: float | None, cache: CacheFormat | None,
    tp: int, usages: list[float],
) -> float | None:  # fmt: skip
    if model is None or part is None:
        return None
    experts = any(isinstance(layer.mlp, MoeMlp) for layer, _ in model.groups)
    if experts or weights_bytes is None or "memory_bytes_per_s" not in part.facts:
        return None
    held = cache_beside_formula(log, model, cache=cache, tp=tp) if cache else ""
    used = statistics.fmean(usages) * held.formula_bytes * tp if isinstance(held, CacheCheck) and usages else 0.0
    return tensor_parallel_step_s(
        weights_bytes=weights_bytes, cache_bytes=used, tp=tp, memory_bytes_per_s=part["memory_bytes_per_s"],
        all_reduces=0, all_reduce_s=0.0,
    )  # fmt: skip


def _share(
    log: EngineRecord, model: Model, part: Part, dtype: str, tp: int, output: float, prompts: list[float]
) -> float | None:
    seconds = logged_s(log)
    if dtype not in part.peaks:
        return None
    if prompts:  # with what the prefix cache had, which was not computed
        computed = statistics.fmean(prompts) * (1 - (log.prefix_hits or 0.0))
    elif log.asked_tokens and seconds:
        computed = (log.asked_tokens - log.found_tokens) / seconds
    else:
        return None
    each = forward_flops(model, batch=1, sequence=1, causal="full", logits="all").total
    return mfu(model_flops_per_s=(computed + output) * each, peak_flops_per_s=tp * part.peak_flops_per_s(dtype))
