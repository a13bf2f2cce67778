"""Engine view: what the explorer shows for a state, as figure, sentences and table. No widget in here.

>>> shown = view(State(precision="int8", fused=False, captured=False, batch=1))
>>> shown.summary.startswith("A step takes 10.3 ms, as long as without any switch: 97 tokens/s.")
True
"""

import functools
from dataclasses import dataclass

from threeloops.facts import hardware
from threeloops.figures.training_loop import step_bars
from threeloops.models import catalogue
from threeloops.product_loop.engine_step import Device, EngineStep, Switches, engine_step
from threeloops.units import fmt_percent, fmt_seconds, us
from threeloops.widgets.view import View

MODEL, PART, CONTEXT = "llama-3-8b", "h100-sxm5", 2048
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)  # 256 caches of this length do not fit beside the weights
# The host's side, as part 7 of chapter 1 has it.
ISSUE_S, GAP_S, GRAPH_LAUNCH_S = 8 * us, 0.5 * us, 50 * us
AXES = (0.012, 0.025, 0.04)  # seconds: few lengths, so that bars can be compared from one setting to the next


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the controls stand."""

    precision: str
    fused: bool
    captured: bool
    batch: int

    def __post_init__(self) -> None:
        if self.batch not in BATCHES:
            raise ValueError(f"batch={self.batch} is none of {', '.join(map(str, BATCHES))}")

    @property
    def switches(self) -> Switches:
        return Switches(precision=self.precision, fused=self.fused, captured=self.captured)


START = State(precision="bf16", fused=False, captured=False, batch=1)


@functools.cache
def device() -> Device:
    """One H100 at its datasheet's rates."""
    part = hardware.part(PART)
    bf16 = part.peak_flops_per_s("bf16")
    return Device(
        matrix_flops_per_s={"bf16": bf16, "int8": part.peak_flops_per_s("int8"), "int4": bf16},
        vector_flops_per_s=part.peak_flops_per_s("fp32"),
        memory_bytes_per_s=part["memory_bytes_per_s"],
        issue_s=ISSUE_S,
        gap_s=GAP_S,
        graph_launch_s=GRAPH_LAUNCH_S,
    )


@functools.lru_cache(maxsize=256)
def step(state: State) -> EngineStep:
    """The decode step of a state."""
    return engine_step(catalogue.model(MODEL), device(), state.switches, batch=state.batch, context=CONTEXT)


def view(state: State) -> View:
    """What to show for a state."""
    now = step(state)
    before = step(State(precision="bf16", fused=False, captured=False, batch=state.batch))
    bars = {"no switch": pieces(before), "now": pieces(now)}
    ratio = before.total_s / now.total_s
    figure = step_bars.step_bars(
        bars,
        title=f"{_named(state)}: {ratio:.2f} times as fast",
        caption=(
            f"Decode step of Llama 3 8B on one H100, batch {state.batch}, {CONTEXT:,} tokens each; datasheet rates,"
            " 8 µs of the host per launch; computed."
        ),
        upto_s=next(end_s for end_s in AXES if end_s >= max(before.total_s, now.total_s)),
        side_by_side=False,
    )
    return View(columns=("", "no switch", "now"), figure=figure, summary=_summary(now, ratio), rows=_rows(before, now))


def pieces(one: EngineStep) -> dict[str, float]:
    """A step's seconds by what takes them."""
    return {
        "matmuls": one.weights_s,
        "attention": one.attention_s,
        "small kernels": one.vector_s,
        "waiting for launches": one.waiting_s,
    }


def _summary(now: EngineStep, ratio: float) -> str:
    compared = "as long as without any switch" if abs(ratio - 1) < 0.005 else f"{ratio:.2f} times as fast as without"
    most, most_s = max(pieces(now).items(), key=lambda piece: piece[1])
    return (
        f"A step takes {fmt_seconds(now.total_s)}, {compared}: {now.tokens_per_s:,.0f} tokens/s."
        f" {now.num_kernels:,} kernels. Most of the step: {most}, {fmt_percent(most_s / now.total_s)}."
    )


def _rows(before: EngineStep, now: EngineStep) -> tuple[tuple[str, ...], ...]:
    def row(what: str, *values: str) -> tuple[str, ...]:
        return (what, *values)

    return (
        row("seconds per step (ITL)", *(fmt_seconds(one.total_s) for one in (before, now))),
        row("tokens/s of all requests", *(f"{one.tokens_per_s:,.0f}" for one in (before, now))),
        row("kernels per step", *(f"{one.num_kernels:,}" for one in (before, now))),
        *(
            row(name, *(fmt_seconds(pieces(one)[name]) for one in (before, now)))
            for name in ("matmuls", "attention", "small kernels", "waiting for launches")
        ),
    )


def _named(state: State) -> str:
    """What has been switched on."""
    parts = (
        (state.fused, "fused"),
        (state.precision != "bf16", f"matmuls in {state.precision}"),
        (state.captured, "one graph"),
    )
    named = ", ".join(name for on, name in parts if on) or "nothing switched on"
    return named[0].upper() + named[1:]
