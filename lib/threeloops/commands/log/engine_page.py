"""The page of `threeloops log` about an engine: what it states, what limits admission, its cache, three suspects."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from threeloops.commands.log.named_in_log import model_of, part_of, stored_weights
from threeloops.commands.log.suspect_rows import log_as_html, log_as_text, log_asks, pace_question, suspects_told
from threeloops.commands.trace import own_drill
from threeloops.commands.trace.told_page import Table
from threeloops.dtypes import SPELLINGS, dtype_named
from threeloops.facts.hardware import Part
from threeloops.models.architecture import Model
from threeloops.product_loop.kv_quantisation import CacheFormat, cache_format
from threeloops.product_loop.logged.engine_account import (
    SOME_WAIT,
    Admission,
    CacheCheck,
    Pace,
    admission,
    cache_beside_formula,
    logged_s,
    pace,
)
from threeloops.product_loop.logged.engine_record import EngineRecord
from threeloops.product_loop.logged.engine_suspects import engine_suspects
from threeloops.product_loop.sizing.stored_weights import FORMATS, weights_bytes_in
from threeloops.training_loop.run.logged.log_suspect import LogSuspect
from threeloops.units import counted, fmt_bytes, fmt_percent, fmt_seconds, fmt_si

STAGES = {
    "waits": "in the queue",
    "prompt": "reading prompts, until the first token",
    "answer": "from the first token to the last",
}
ASSUMES = (
    "a periodic line holds since the one before; the cache is full where a request waits and 0.9 of it are in use, or"
    " one more like those that run would not fit",
    "tokens a second grow with the requests that run, at best as much as they do",
)
SOURCES = (
    "vLLM, vllm/v1/metrics/loggers.py; SGLang, srt/managers/scheduler_metrics_mixin.py; llama.cpp, tools/server",
    "Kwon et al., 2023, arXiv:2309.06180 (blocks, preemption); Amdahl, 1967, doi:10.1145/1465482.1465560",
)

FOOTER = [*(f"  assumes: {sentence}" for sentence in ASSUMES), *(f"  source:  {source}" for source in SOURCES)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All that is said."""

    log: EngineRecord
    name: str
    cut: str
    model: Model | None
    part: Part | None
    dtype: str
    weights: str
    tp: int | None
    limits: dict[str, Admission]
    pace: Pace | None
    cache: CacheCheck | str
    weights_bytes: float | None  # of one GPU, by the formula
    suspects: tuple[LogSuspect, ...]


def answer(log: EngineRecord, given: argparse.Namespace, *, name: str, cut: str) -> str:
    """The page, or its JSON."""
    log.seats = given.max_num_seqs or log.seats
    tp = given.gpus or log.tp or _alone(log)
    model, part = model_of(given, log.model), part_of(given, log.hardware)
    stored = _dtype(given.dtype or log.dtype)
    weights = _weights(given.weights or log.weights or stored_weights(log.model) or stored)
    dtype = "fp8" if weights == "fp8" and not given.dtype else stored  # what is multiplied
    cache = _cache(model, given.cache or (log.cache if log.cache not in ("", "auto") else stored))
    own = weights_bytes_in(model, weights) / tp if model and weights and tp else None
    whole = (log.weights_bytes or own or 0.0) * (tp or 1) or None
    limits = admission(log)
    paced = pace(log, model=model, part=part if tp else None, weights_bytes=whole, cache=cache, dtype=dtype, tp=tp or 1)
    told = Answer(
        log=log, name=name, cut=cut, model=model, part=part, dtype=dtype, weights=weights, tp=tp, limits=limits,
        pace=paced, cache=_checked(log, model, cache, tp), weights_bytes=own,
        suspects=engine_suspects(log, limits, paced),
    )  # fmt: skip
    asks = log_asks(pace_question(paced))
    if given.drill:
        own_drill.pose(told.suspects, place=given.drill, asks=asks)
    if given.json:
        return _json(told)
    if given.html:
        return log_as_html(_blocks(told), told.suspects, FOOTER, asks=asks, name=name)
    return log_as_text(_blocks(told), told.suspects, FOOTER, asks=asks)


def _alone(log: EngineRecord) -> int | None:
    """llama.cpp states its whole model and cache; the others' figures are of one of tp GPUs."""
    return 1 if log.engine == "llama.cpp" else None


def _dtype(stated: str) -> str:
    known = {name for name, others in SPELLINGS.items() if stated in (name, *others)}
    return dtype_named(dtype=stated) if stated and (known or stated in FORMATS) else ""


def _weights(stated: str) -> str:
    """A format of weights that is counted here; empty for others, which an engine may know."""
    name = stated.lower().replace("awq_marlin", "awq").replace("gptq_marlin", "gptq")
    return name if name in FORMATS else ""


def _cache(model: Model | None, stated: str) -> CacheFormat | None:
    if model is None or not stated:
        return None
    try:
        return cache_format(model, cache="fp8" if stated.startswith("fp8_e") else stated)
    except ValueError:
        return None


def _checked(log: EngineRecord, model: Model | None, cache: CacheFormat | None, tp: int | None) -> CacheCheck | str:
    missing = [
        what
        for what, known in (
            ("--model", model),
            ("--cache (or --dtype)", cache or not model),
            ("--gpus", tp),
        )
        if not known
    ]
    if missing or not (model and cache and tp):
        return f"{' and '.join(missing)} would put the formula's bytes beside it"
    return cache_beside_formula(log, model, cache=cache, tp=tp)


def _blocks(told: Answer) -> Sequence[str | Table]:
    return [*_head(told), *_admission_rows(told), *_stage_rows(told.log), *_cache_rows(told), *_pace_rows(told)]


def _head(told: Answer) -> Sequence[str | Table]:
    log = told.log
    seconds = logged_s(log)
    what = counted(log.entries, "moment") + (f" in {fmt_seconds(seconds)}" if seconds else "") if log.entries else ""
    if not log.entries:
        what = "no periodic line" if not log.stages else f"{counted(int(log.requests or 0), 'request')} timed"
    kind = "a scrape of /metrics, " if log.scraped else ""
    rows: list[str | Table] = [f"{told.name}: {log.engine}{' ' + log.version if log.version else ''}, {kind}{what}"]
    rows += [f"  {told.cut}; what follows is of that part"] if told.cut else []
    rows.append("  " + _model_words(log.model, told.model))
    ranks = {rank for rank in log.columns["rank"] if rank == rank}
    rows += [f"  {len(ranks)} engines or ranks; figures are of one, in the mean"] if len(ranks) > 1 else []
    stated = {
        "device": told.part.name if told.part else log.hardware,
        "GPUs of a model": str(told.tp or ""),
        "dtype": told.dtype,
        "weights": told.weights if told.weights != told.dtype else "",
        "longest context": f"{log.max_model_len:,} tokens" if log.max_model_len else "",
        "seats (max_num_seqs)": f"{log.seats:,}" if log.seats else "not stated",
        "tokens of a step": f"{log.step_tokens:,}" if log.step_tokens else "",
    }
    rows += ["", Table([("stated or given", ""), *((key, value) for key, value in stated.items() if value)])]
    return rows


def _model_words(stated: str, model: Model | None) -> str:
    if model:
        return f"model {model.name}" + (f" (the log: {stated})" if stated and stated != model.name else "")
    if stated:
        return f"the log's model {stated!r} is not in the catalogue: --model names it, or the path of its config.json"
    return "the log states no model: --model names it"


def _admission_rows(told: Answer) -> Sequence[str | Table]:
    if not told.limits:
        return []
    table = [("what limits the requests that run", "of the time", "running", "waiting")]
    table += [
        (
            cause,
            fmt_percent(one.share),
            f"{one.running:,.1f}",
            f"{one.waiting:,.1f}" if cause in SOME_WAIT else "",
        )
        for cause, one in told.limits.items()
    ]
    log = told.log
    rows: list[str | Table] = ["", Table(table)]
    usage = [value for value in log.columns["kv_usage"] if value == value]
    if usage:
        rows.append(
            f"  cache in use: {fmt_percent(sum(usage) / len(usage))} in the mean, {fmt_percent(max(usage))} at most"
        )
    preempted = "the log does not state them" if log.preempted is None else f"{log.preempted:,}"
    rows.append(f"  preemptions: {preempted}{_per_request(log)}")
    hits = log.prefix_hits
    rows.append(f"  prefix hits: {'not stated' if hits is None else fmt_percent(hits) + ' of prompt tokens'}")
    return rows


def _per_request(log: EngineRecord) -> str:
    return f", {log.preempted / log.requests:.2f} for each request that ended" if log.preempted and log.requests else ""


def _stage_rows(log: EngineRecord) -> Sequence[str | Table]:
    total = sum(log.stages.values())
    if not total:
        return []
    each = f"{fmt_seconds(total / log.requests)} each" if log.requests else ""
    table = [("requests' time", "share", each)]
    table += [(STAGES[stage], fmt_percent(seconds / total), "") for stage, seconds in log.stages.items()]
    rows: list[str | Table] = ["", Table(table)]
    for stage, kind, what in (("prompt", "prompt", "prompt tokens"), ("answer", "output", "tokens")):
        if log.tokens[kind] and log.stages.get(stage) and log.engine == "llama.cpp":
            rows.append(f"  {log.tokens[kind] / log.stages[stage]:,.1f} {what} a second of one request")
    return rows


def _cache_rows(told: Answer) -> Sequence[str | Table]:
    log, held = told.log, told.cache
    stated = []
    if log.weights_bytes:
        own = f"; by the formula {_gib(told.weights_bytes)} ({told.weights})" if told.weights_bytes else ""
        stated.append(f"weights: {_gib(log.weights_bytes)}{own}")
    if log.kv_tokens:
        blocks = f" in {log.num_blocks:,} blocks" if log.num_blocks else ""
        size = f", {_gib(log.kv_bytes)}" if log.kv_bytes else ""
        line = f"cache: {log.kv_tokens:,} tokens{blocks}{size}"
        if isinstance(held, CacheCheck):
            ratio = f", {held.formula_bytes / held.stated_bytes:.3f} of what is stated" if held.stated_bytes else ""
            line += f"; by the formula {_gib(held.formula_bytes)}{ratio}"
        else:
            line += f"; {held}"
        stated.append(line)
        if log.max_model_len:
            stated.append(f"at the longest context {log.kv_tokens / log.max_model_len:.2f} requests fit")
    return (
        ["", f"  memory of {'one GPU' if (told.tp or 2) > 1 else 'the GPU'}", *(f"    {row}" for row in stated)]
        if stated
        else []
    )


def _gib(size: float | None) -> str:
    return fmt_bytes(size or 0.0, base=2)


def _pace_rows(told: Answer) -> Sequence[str | Table]:
    if not told.pace:
        return []
    one = told.pace
    rows = [
        "",
        f"  from token to token: {fmt_seconds(one.step_s)} with {one.running:,.1f} running, prompts of others in it",
    ]
    if one.floor_s:
        device = told.part.key if told.part else ""
        rows.append(f"  floor of that step: {fmt_seconds(one.floor_s)}, weights and used cache at {device}'s bandwidth")
    if one.mfu is not None and told.part and told.model:
        peak = fmt_si((told.tp or 1) * told.part.peak_flops_per_s(told.dtype), "FLOP/s")
        rows.append(
            f"  MFU {fmt_percent(one.mfu)}: 2 FLOP for each weight of {told.model.name} that multiplies a token, of"
            f" {told.tp} × {told.part.key}'s dense {told.dtype} peak, {peak}"
        )
    return rows


def _json(told: Answer) -> str:
    log, held = told.log, told.cache
    data: dict[str, Any] = {
        "title": f"log of {told.name}", "engine": log.engine, "version": log.version or None,
        "model": told.model.name if told.model else None, "model_stated": log.model or None,
        "hardware": told.part.key if told.part else None, "gpus": told.tp, "dtype": told.dtype or None,
        "weights": told.weights or None, "seats": log.seats, "cut": told.cut or None,
        "moments": log.entries, "logged_s": logged_s(log),
        "admission": {
            cause: {"share": one.share, "running": one.running, "waiting": one.waiting, "factor": one.factor}
            for cause, one in told.limits.items()
        },
        "preemptions": log.preempted, "prefix_hits": log.prefix_hits, "requests": log.requests,
        "stages_s": log.stages,
        "weights_bytes": {"stated": log.weights_bytes, "formula": told.weights_bytes},
        "cache": {
            "tokens": log.kv_tokens, "blocks": log.num_blocks, "stated_bytes": log.kv_bytes,
            "formula_bytes": held.formula_bytes if isinstance(held, CacheCheck) else None,
            "why_not": held if isinstance(held, str) else None,
        },
        "pace": {"step_s": told.pace.step_s, "running": told.pace.running, "floor_s": told.pace.floor_s,
                 "mfu": told.pace.mfu} if told.pace else None,
        "suspects": suspects_told(told.suspects), "assumes": ASSUMES, "sources": SOURCES,
    }  # fmt: skip
    return json.dumps(data, indent=1, ensure_ascii=False)
