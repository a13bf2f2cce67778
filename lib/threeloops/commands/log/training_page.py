"""The page of `threeloops log` about a training run: its typical step, MFU by whose FLOPs and whose peak, memory, loss,
three suspects."""

import argparse
import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from threeloops.commands.log.named_in_log import model_of, part_of
from threeloops.commands.log.suspect_rows import day_question, log_as_html, log_as_text, log_asks, suspects_told
from threeloops.commands.trace import own_drill
from threeloops.commands.trace.told_page import Table
from threeloops.dtypes import dtype_named
from threeloops.facts.hardware import Part
from threeloops.models.architecture import Model
from threeloops.models.model_flops import training_flops
from threeloops.models.parameters import model_parameters
from threeloops.models.utilisation import mfu
from threeloops.training_loop.run.logged.log_suspect import LogSuspect
from threeloops.training_loop.run.logged.step_account import RATES_ALONE, LostTime, StepAccount, step_account
from threeloops.training_loop.run.logged.step_record import StepRecord
from threeloops.training_loop.run.logged.step_suspects import step_suspects
from threeloops.units import counted, fmt_bytes, fmt_percent, fmt_seconds, fmt_si

CAUSAL = "full"  # attention's whole square, as PaLM and torchtitan charge it
SAME = 0.01  # of two peaks: as good as one
COUNTS_APART = 1.4  # of one step's FLOPs: more than recomputing all of it adds, a third
STATES_BYTES = 16  # of a parameter with Adam in mixed precision, before anything is shared: what `memory` counts
ASSUMES = (
    "the first entry is the start, and no typical step; a long step takes more than 1.5 typical ones",
    "a spike is a loss 8 deviations above the median of the 32 before; no step is faster than its FLOPs at the peak",
)
SOURCES = (
    "Megatron-LM, training.py; torchtitan, components/metrics.py; transformers, trainer.py and trainer_callback.py",
    "Chowdhery et al., 2022, arXiv:2204.02311 (MFU); Rajbhandari et al., 2019, arXiv:1910.02054 (states)",
    "Amdahl, 1967, doi:10.1145/1465482.1465560",
)

FOOTER = [*(f"  assumes: {sentence}" for sentence in ASSUMES), *(f"  source:  {source}" for source in SOURCES)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """FLOP per second of one GPU, and who counted them."""

    flops_per_s: float
    whose: str
    peak_flops_per_s: float | None
    whose_peak: str

    @property
    def mfu(self) -> float | None:
        """The share of the peak; None where no peak is known."""
        if not self.peak_flops_per_s:
            return None
        return mfu(model_flops_per_s=self.flops_per_s, peak_flops_per_s=self.peak_flops_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All that is said."""

    log: StepRecord
    name: str
    cut: str
    model: Model | None
    part: Part | None
    account: StepAccount
    tokens_per_s: float | None  # of one GPU
    rates: tuple[Rate, ...]
    suspects: tuple[LogSuspect, ...]


def answer(log: StepRecord, given: argparse.Namespace, *, name: str, cut: str) -> str:
    """The page, or its JSON."""
    log.num_gpus = given.gpus or log.num_gpus
    log.sequence, log.global_batch = given.sequence or log.sequence, given.batch or log.global_batch
    log.dtype = dtype_named(dtype=given.dtype or log.dtype) if given.dtype or log.dtype else ""
    model, part = model_of(given, log.model), part_of(given, log.hardware)
    account = step_account(log)
    tokens = _tokens_per_s(log, account)
    rates = tuple(_rates(log, model, part, tokens))
    best = next((rate.mfu for rate in reversed(rates) if rate.mfu is not None and rate.mfu <= 1), None)
    told = Answer(
        log=log, name=name, cut=cut, model=model, part=part, account=account, tokens_per_s=tokens, rates=rates,
        suspects=step_suspects(log, account, mfu=best),
    )  # fmt: skip
    asks = log_asks(day_question(account))
    if given.drill:
        own_drill.pose(told.suspects, place=given.drill, asks=asks)
    if given.json:
        return _json(told)
    if given.html:
        return log_as_html(_blocks(told), told.suspects, FOOTER, asks=asks, name=name)
    return log_as_text(_blocks(told), told.suspects, FOOTER, asks=asks)


def _tokens_per_s(log: StepRecord, account: StepAccount) -> float | None:
    """Of one GPU, in the typical step."""
    stated = log.known("tokens_per_s")
    if stated:
        return _median(stated[1:] or stated)
    if not (log.sequence and log.num_gpus):
        return None
    if account.typical_s and log.global_batch:
        return log.global_batch * log.sequence / account.typical_s / log.num_gpus
    samples = log.rates.get("samples")
    return samples * log.sequence / log.num_gpus if samples else None


def _median(values: list[float]) -> float:
    return statistics.median(values)


def _rates(log: StepRecord, model: Model | None, part: Part | None, tokens: float | None) -> list[Rate]:
    """The log's own count of FLOPs and ours, each with a peak; ours last."""
    ours, whose = None, "no peak is known: --hardware and --dtype"
    if part and log.dtype and not part.engines:
        ours, whose = part.peak_flops_per_s(log.dtype), f"{part.key}'s dense {log.dtype} peak in our catalogue"
    found = []
    stated = log.known("flops_per_s")
    if stated:
        theirs = log.peak_flops_per_s
        counted_by = f"{log.software}'s own count"
        typical = _median(stated[1:] or stated)
        if theirs:
            found.append(Rate(flops_per_s=typical, whose=counted_by, peak_flops_per_s=theirs,
                              whose_peak=f"the peak that {log.software} took"))  # fmt: skip
        if not theirs or (ours and not math.isclose(ours, theirs, rel_tol=SAME)):
            found.append(Rate(flops_per_s=typical, whose=counted_by, peak_flops_per_s=ours, whose_peak=whose))
    if model and tokens and log.sequence:
        step = training_flops(model, batch=1, sequence=log.sequence, causal=CAUSAL, recompute="none")
        counted_by = f"our count of {model.name} at {log.sequence:,} tokens, attention's whole square, no recomputation"
        found.append(
            Rate(
                flops_per_s=tokens * step.model / step.tokens, whose=counted_by, peak_flops_per_s=ours, whose_peak=whose
            )
        )  # fmt: skip
    return found


def _blocks(told: Answer) -> Sequence[str | Table]:
    return [*_head(told), *_time_rows(told), *_rate_rows(told), *_memory_rows(told), *_loss_rows(told)]


def _head(told: Answer) -> Sequence[str | Table]:
    log, steps = told.log, told.log.known("step")
    what = f", steps {min(steps):,.0f} to {max(steps):,.0f}" if steps else ""
    entries = "1 entry" if log.entries == 1 else f"{log.entries:,} entries"
    rows = [f"{told.name}: {log.software}, {entries}{what}"]
    rows += [f"  {told.cut}; what follows is of that part"] if told.cut else []
    layout = ", ".join(f"{name} {size}" for name, size in log.layout.items() if size > 1)
    stated = {
        "model": f"{told.model.name}{f' (the log: {log.model})' if log.model else ''}" if told.model else log.model,
        "device": told.part.name if told.part else log.hardware,
        "GPUs": f"{log.num_gpus:,}" if log.num_gpus else "",
        "layout": layout,
        "sequence": f"{log.sequence:,} tokens" if log.sequence else "",
        "batch of a step": f"{log.global_batch:,} sequences" if log.global_batch else "",
        "dtype": log.dtype,
    }
    known = [(key, value) for key, value in stated.items() if value]
    return [*rows, "", Table([("stated or given", ""), *known])] if known else rows


def _time_rows(told: Answer) -> Sequence[str | Table]:
    account, log = told.account, told.log
    table = [("time", "", "")]
    if account.typical_s and account.clock != RATES_ALONE:
        table.append(("a typical step", fmt_seconds(account.typical_s), f"by {account.clock}"))
    if account.first_ratio:
        table.append(("the first entry's step", f"{account.first_ratio:.1f} typical ones", "left out of what follows"))
    for what, lost in (("in long steps, beyond a typical one", account.stalls), ("beside the steps", account.between)):
        if lost:
            table.append((what, fmt_percent(lost.share), _times(lost)))
    if account.slower:
        table.append(("a step at the end", f"{account.slower:.2f} of one at the beginning", ""))
    if log.total_s:
        table.append(("the whole run", fmt_seconds(log.total_s), ""))
    if told.tokens_per_s:
        table.append(("tokens a second of one GPU", f"{told.tokens_per_s:,.0f}", ""))
    return ["", Table(table)] if len(table) > 1 else []


def _times(lost: LostTime) -> str:
    return f"{counted(lost.number, 'time')}{', ' + lost.beside if lost.beside else ''}" if lost.number else ""


def _rate_rows(told: Answer) -> Sequence[str | Table]:
    rows = []
    for rate in told.rates:
        share = "" if rate.mfu is None else f", MFU {fmt_percent(rate.mfu)}"
        rows.append(f"  {fmt_si(rate.flops_per_s, 'FLOP/s')} of one GPU{share}")
        rows += [f"    FLOPs: {rate.whose}", f"    peak:  {_peak(rate)}"]
        if rate.mfu is not None and rate.mfu > 1:
            rows.append(
                "    more than the peak: the model, GPUs, sequence or dtype of this line are not those of the log"
            )
    counts = {rate.flops_per_s for rate in told.rates}
    if len(counts) > 1 and max(counts) > COUNTS_APART * min(counts):
        rows.append(
            f"  the two counts of FLOPs are {max(counts) / min(counts):.1f} times apart: --model, --sequence or --gpus"
            f" are not the log's, or {told.log.software} counts otherwise"
        )
    peaks = {rate.peak_flops_per_s for rate in told.rates if rate.peak_flops_per_s}
    if len(peaks) > 1 and not math.isclose(max(peaks), min(peaks), rel_tol=SAME):
        rows.append(f"  the log's peak is not our catalogue's: its MFU is of {fmt_si(min(peaks), 'FLOP/s')} or"
                    f" {fmt_si(max(peaks), 'FLOP/s')} (torchtitan takes an A100's for unknown ones)")  # fmt: skip
    return ["", *rows] if rows else []


def _peak(rate: Rate) -> str:
    return f"{fmt_si(rate.peak_flops_per_s, 'FLOP/s')}, {rate.whose_peak}" if rate.peak_flops_per_s else rate.whose_peak


def _memory_rows(told: Answer) -> Sequence[str | Table]:
    log, held = told.log, told.log.known("memory_bytes")
    rows = []
    if held:
        share = log.known("memory_share")
        whole = told.part.capacity_bytes() if told.part else log.memory_bytes
        of = f", {fmt_percent(max(share))} of the device" if share else ""
        of = of or (f", {fmt_percent(max(held) / whole)} of {fmt_bytes(whole, base=2)}" if whole else "")
        rows.append(f"  memory that the framework holds, at most: {fmt_bytes(max(held), base=2)}{of}")
    number = float(model_parameters(told.model).total) if told.model else log.num_parameters
    if number and log.num_gpus:
        states = number * STATES_BYTES / log.num_gpus
        rows.append(
            f"  weights, gradients and Adam's states at {STATES_BYTES} bytes a parameter, if all {log.num_gpus:,}"
            f" GPUs share them: {fmt_bytes(states, base=2)}; `threeloops memory` counts activations and other recipes"
        )
    return ["", *rows] if rows else []


def _loss_rows(told: Answer) -> Sequence[str | Table]:
    losses = [loss for loss in told.log.known("loss") if abs(loss) != float("inf")]
    if not losses:
        return []
    account = told.account
    row = f"  loss {losses[0]:.4g} at first, {losses[-1]:.4g} at last, {min(losses):.4g} at least"
    row += f"; {counted(len(account.spikes), 'spike')}" if account.spikes else "; no spike"
    row += f"; {account.skipped_number:,} skipped updates" if account.skipped_number else ""
    return ["", row + (f"; no number since step {account.lost_since:,.0f}" if account.lost_since is not None else "")]


def _json(told: Answer) -> str:
    log, account = told.log, told.account
    lost = {
        name: {"share": one.share, "number": one.number, "beside": one.beside or None}
        for name, one in (("long_steps", account.stalls), ("between_steps", account.between))
        if one
    }
    data: dict[str, Any] = {
        "title": f"log of {told.name}", "software": log.software, "cut": told.cut or None,
        "model": told.model.name if told.model else None, "model_stated": log.model or None,
        "hardware": told.part.key if told.part else None, "hardware_stated": log.hardware or None,
        "gpus": log.num_gpus, "layout": log.layout, "sequence": log.sequence, "batch": log.global_batch,
        "dtype": log.dtype or None, "entries": log.entries,
        "step_s": account.typical_s if account.clock != RATES_ALONE else None, "clock": account.clock,
        "lost": lost, "slower": account.slower, "tokens_per_s": told.tokens_per_s, "total_s": log.total_s,
        "rates": [
            {"flops_per_s": rate.flops_per_s, "counted_by": rate.whose, "peak_flops_per_s": rate.peak_flops_per_s,
             "peak_of": rate.whose_peak, "mfu": rate.mfu} for rate in told.rates
        ],
        "memory_bytes": max(log.known("memory_bytes"), default=None),
        "loss": {
            "spikes": [{"step": step, "loss": loss} for step, loss in account.spikes], "in_spikes": account.in_spikes,
            "skipped": account.skipped_number, "no_number_since": account.lost_since,
        },
        "suspects": suspects_told(told.suspects), "assumes": ASSUMES, "sources": SOURCES,
    }  # fmt: skip
    return json.dumps(data, indent=1, ensure_ascii=False)
