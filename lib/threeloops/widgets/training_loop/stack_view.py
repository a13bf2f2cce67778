"""Training-stack view: what the explorer shows for a state, as figure, sentences and table. No widget in here: it is
tested without a browser.

>>> shown = view(Setup())
>>> shown.summary.startswith("A step takes 2.00 s; the loader is the bottleneck.")
True
"""

import functools

from threeloops.facts import hardware
from threeloops.figures.training_loop import step_bars
from threeloops.models import catalogue
from threeloops.training_loop.updates.optimisation_stack import Machine, Setup, Stacked, stacked
from threeloops.units import billion, fmt_bytes, fmt_percent, fmt_seconds
from threeloops.widgets.view import View

BATCH = 8
WORKERS, MICRO_BATCHES = (1, 2, 4, 8, 16), (1, 2, 4, 8)
TOKENS = 10 * billion  # ten billion
SAMPLE_S, DOLLARS_PER_HOUR = 0.25, 3.0  # the job's assumptions: text that is tokenised on the way in; a rent
COLUMNS = ("", "at the start", "now", "change")
AXES = (0.2, 0.5, 1.0, 2.5)  # seconds: few lengths, so that bars can be compared from one setting to the next
START = Setup(batch=BATCH)


@functools.cache
def machine() -> Machine:
    """One H100, with the rate that the best large products have been measured to reach; the other precisions at the
    same share of their peaks.
    """
    part = hardware.part("h100-sxm5")
    reached = part["best_gemm_flops_per_s_bf16"] / part.peak_flops_per_s("bf16")
    return Machine(
        matrix_flops_per_s={
            precision: reached * part.peak_flops_per_s(precision) for precision in ("fp32", "tf32", "bf16")
        },
        memory_bytes_per_s=part["memory_bytes_per_s"],
        usable_bytes=part["usable_bytes"],
        sample_s=SAMPLE_S,
        dollars_per_hour=DOLLARS_PER_HOUR,
    )


@functools.lru_cache(maxsize=256)
def step(setup: Setup) -> Stacked:
    """The step of GPT-2 XL in a set-up."""
    return stacked(catalogue.model("gpt2-xl"), machine(), setup)


def view(setup: Setup) -> View:
    """What to show for a state."""
    now, start = step(setup), step(START)
    device = now.step.device_s
    next_s = min(now.step.loader_s, now.step.busy_s)
    fits = "It fits." if now.fits else f"It does not fit: the card has {fmt_bytes(now.usable_bytes, base=2)}."
    beside = f"The {'device' if now.pace == 'loader' else 'loader'} would be done after {fmt_seconds(next_s)}."
    most, most_s = max(device.items(), key=lambda part: part[1])
    largest = f"Most of the device's time: {most}, {fmt_percent(most_s / now.step.busy_s)}."
    memory = f"Memory {fmt_bytes(now.memory_bytes, base=2)}. {fits}"
    summary = (
        f"A step takes {fmt_seconds(now.total_s)}; the {now.pace} is the bottleneck. {beside} {largest} {memory}"
        f" ${now.dollars(tokens=TOKENS):,.0f}."
    )
    figure = step_bars.step_bars(
        {"loader": {"loading": now.step.loader_s}, "device": dict(device)},
        title=f"{_named(setup)}: {start.total_s / now.total_s:.2f} times as fast",
        caption=(
            f"GPT-2 XL on one H100, {BATCH} sequences of 1,024 tokens per update. Loader and device run side by side;"
            " the dashed line is the step."
        ),
        upto_s=next((end_s for end_s in AXES if end_s >= max(now.step.loader_s, now.step.busy_s)), None),
    )
    return View(columns=COLUMNS, figure=figure, summary=summary, rows=_rows(start, now))


def _rows(start: Stacked, now: Stacked) -> tuple[tuple[str, ...], ...]:
    def change(before: float, after: float) -> str:
        return f"{fmt_percent(after / before)} of it"

    money = [one.dollars(tokens=TOKENS) for one in (start, now)]
    return (
        ("seconds per step", fmt_seconds(start.total_s), fmt_seconds(now.total_s), change(start.total_s, now.total_s)),
        (
            "tokens/s",
            f"{start.tokens_per_s:,.0f}",
            f"{now.tokens_per_s:,.0f}",
            change(start.tokens_per_s, now.tokens_per_s),
        ),
        (
            "memory",
            fmt_bytes(start.memory_bytes, base=2),
            fmt_bytes(now.memory_bytes, base=2),
            change(start.memory_bytes, now.memory_bytes),
        ),
        ("fits", *("yes" if one.fits else "no" for one in (start, now)), ""),
        ("dollars for 10 billion tokens", *(f"{each:,.0f}" for each in money), change(*money)),
    )


def _named(setup: Setup) -> str:
    """What has been switched on."""
    parts = (
        (setup.workers > 1, f"{setup.workers} workers"),
        (setup.precision != "fp32", setup.precision),
        (setup.compiled, "compiled"),
        (setup.update != "foreach", f"{setup.update} update"),
        (setup.micro_batches > 1, f"{setup.micro_batches} micro-batches"),
        (setup.checkpointing, "checkpointing"),
    )
    return ", ".join(name for on, name in parts if on) or "Nothing switched on"
