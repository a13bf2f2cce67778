"""Capacity view: what the capacity explorer shows for a state, as figure, sentences and table. No widget in here: it is
computed and tested without a browser.

Llama 3 8B in BF16 on H100s, as in the chapter; the rate keeps 30 % headroom.

>>> for said in view(State(rate=40, prompt=1500, output=300, itl_ms=30)).summary.split(". "):
...     print(said)
5 GPUs: the rate decides (ITL 3.2, rate 4.2)
One request costs 73.8 ms of a GPU: prefill 48.7 ms, its caches 19.4 ms, its share of the weights 5.71 ms
With all GPUs tokens are 10.5 ms apart.
"""

import functools
from dataclasses import dataclass

from threeloops.facts import hardware
from threeloops.figures.product_loop.bound_bars import bound_bars
from threeloops.models import catalogue
from threeloops.product_loop import capacity, deployments
from threeloops.units import GB, fmt_seconds, ms
from threeloops.widgets.view import View

RATES = (1, 2, 5, 10, 20, 40, 80, 160)  # requests/s
PROMPTS = (200, 500, 1500, 4000, 12_000)
OUTPUTS = (50, 150, 300, 1000, 3000, 8000)
ITLS = (6, 8, 12, 20, 30, 50, 100)  # ms
HEADROOM = 0.3
COLUMNS = ("bound", "GPUs", "what makes it smaller")
NAMES = {"itl": "ITL", "rate": "rate"}
PIECES = {
    "prefill": "prefixes that hit, shorter prompts",
    "its caches": "fewer bytes per cached token, shorter answers",
    "its share of the weights": "fewer bytes per weight, more memory for caches",
}
ITL_CURE = "fewer bytes per weight, prefill elsewhere, a later promise"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the controls stand."""

    rate: int  # requests/s
    prompt: int  # tokens
    output: int  # tokens
    itl_ms: int

    def __post_init__(self) -> None:
        for name, value, known in (
            ("rate", self.rate, RATES),
            ("prompt", self.prompt, PROMPTS),
            ("output", self.output, OUTPUTS),
            ("itl_ms", self.itl_ms, ITLS),
        ):
            if value not in known:
                raise ValueError(f"{name}={value!r} must be one of {', '.join(map(str, known))}")


@functools.cache
def gpu() -> capacity.Replica:
    """The replica of the chapter."""
    return deployments.replica(
        catalogue.model("llama-3-8b"),
        hardware.part("h100-sxm5"),
        num_gpus=1,
        other_bytes=3 * GB,
        prefill_utilisation=0.5,
    )


def plan(state: State) -> tuple[capacity.Load, capacity.Bounds]:
    """The load of a state and its two bounds."""
    load = capacity.Load(requests_per_s=state.rate, prompt_tokens=state.prompt, output_tokens=state.output)
    return load, capacity.bounds(load, gpu(), itl_s=state.itl_ms * ms, headroom=HEADROOM)


def work(load: capacity.Load) -> dict[str, float]:
    """Seconds of one GPU that a request costs with all slots full, in pieces."""
    prefill, caches = gpu().prefill_s(load), gpu().cache_read_s(load)
    whole = capacity.request_work_s(load, gpu(), batch=gpu().memory_slots(load))
    return dict(zip(PIECES, (prefill, caches, whole - prefill - caches), strict=True))


def view(state: State) -> View:
    """Everything there is to see at a state."""
    load, found = plan(state)
    pieces = work(load)
    gap_s = capacity.mean_gap_s(load, gpu(), replicas=found.replicas)
    asked = {name: getattr(found, key) for key, name in NAMES.items()}
    gpus = f"{found.replicas:,} GPU{'s' * (found.replicas > 1)}"
    figure = bound_bars(
        {f"{state.rate}/s, {state.prompt:,} + {state.output:,} tokens, ITL {state.itl_ms} ms": asked},
        what="GPUs",
        title=f"{gpus}: the {NAMES[found.binding]} decides",
        caption="Llama 3 8B in BF16 on H100, 30 % headroom in the rate; computed.",
    )
    numbers = ", ".join(f"{name} {value:.1f}" for name, value in asked.items())
    costs = ", ".join(f"{name} {fmt_seconds(seconds)}" for name, seconds in pieces.items())
    return View(
        figure=figure,
        summary=(
            f"{gpus}: the {NAMES[found.binding]} decides ({numbers}). One request costs"
            f" {fmt_seconds(sum(pieces.values()))} of a GPU: {costs}. With all GPUs tokens are {fmt_seconds(gap_s)}"
            " apart."
        ),
        columns=COLUMNS,
        rows=(
            ("ITL", f"{found.itl:.1f}", ITL_CURE),
            ("rate", f"{found.rate:.1f}", PIECES[max(pieces, key=lambda name: pieces[name])]),
        ),
    )
