"""Scaling view: what the scaling explorer shows for a state, as figure, sentences and table. No widget in here: it is
computed and tested without a browser.

The job is plain data parallelism on H100s, as in the chapter: every GPU holds the model and works on its part of the
batch; gradients leave in buckets during the backward pass, over NVLink inside a node of 8 and, beyond, in two levels
over the network cards of the nodes: one card for each GPU, or one for all eight.

>>> print(view(State(gpus=1024, billions=8, batch_tokens=2**20, cards=8)).summary)
1,024 GPUs: a step takes 198 ms, and for 78.4 ms of it they wait for the exchange. Efficiency 50.3 %: as much as 515 GPUs that never wait.
"""  # noqa: E501

import functools
from dataclasses import dataclass

from threeloops.facts import hardware
from threeloops.figures.training_loop.scaling_curve import scaling_curve
from threeloops.training_loop.network import collectives
from threeloops.training_loop.parallelism import step_time
from threeloops.units import fmt_percent, fmt_seconds, fmt_si, us
from threeloops.widgets.view import View

GPUS = tuple(2**power for power in range(13))
BILLIONS = (1, 3, 8, 30, 70)
BATCHES = tuple(2**power for power in range(18, 25))  # tokens per step
SEQUENCE = 1024  # tokens; a GPU without a whole sequence has nothing to work on

PART = hardware.part("h100-sxm5")
REACHED = 0.5  # of the dense bf16 peak
NODE, NETWORK, ALPHA_S = 8, hardware.part("infiniband-ndr"), 5 * us
BUCKETS, OVERHEAD_S = 40, 0.02
CARDS = {"8: one for each GPU": 8, "1 for all eight GPUs": 1}
COLUMNS = ("of a step", "time", "share")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the controls stand."""

    gpus: int
    billions: int  # parameters
    batch_tokens: int  # of all GPUs together, per step
    cards: int  # network cards of a node

    def __post_init__(self) -> None:
        for name, value, known in (
            ("gpus", self.gpus, GPUS),
            ("billions", self.billions, BILLIONS),
            ("batch_tokens", self.batch_tokens, BATCHES),
            ("cards", self.cards, tuple(CARDS.values())),
        ):
            if value not in known:
                raise ValueError(f"{name}={value!r} must be one of {', '.join(map(str, known))}")
        if self.gpus > most_gpus(self.batch_tokens):
            raise ValueError(
                f"gpus={self.gpus} must be at most {most_gpus(self.batch_tokens)}: a batch of {self.batch_tokens:,}"
                " tokens has no more sequences"
            )


def most_gpus(batch_tokens: int) -> int:
    """GPUs that get at least one sequence each."""
    return int(max(gpus for gpus in GPUS if gpus * SEQUENCE <= batch_tokens))


@functools.lru_cache(maxsize=1024)
def exchange_s(gpus: int, billions: int, cards: int) -> float:
    """Seconds for the all-reduce of all gradients, in bf16: inside the nodes, between them, and back."""
    return collectives.hierarchical_all_reduce(
        size_bytes=2e9 * billions,
        nodes=max(1, gpus // NODE),
        ranks_per_node=min(gpus, NODE),
        intra_alpha_s=ALPHA_S,
        intra_bytes_per_s_one_way=float(PART["link_bytes_per_s_one_way"]),
        inter_alpha_s=ALPHA_S,
        inter_bytes_per_s_one_way_per_rank=cards / NODE * float(NETWORK["bytes_per_s_one_way"]),
        inter_algorithm="ring",
    ).total_s


@functools.lru_cache(maxsize=1024)
def step(gpus: int, billions: int, batch_tokens: int, cards: int) -> step_time.StepTime:
    """The step of one GPU: a third of the computing forward, two thirds backward."""
    compute_s = 6e9 * billions * batch_tokens / gpus / (REACHED * PART.peak_flops_per_s("bf16"))
    return step_time.data_parallel_step(
        forward_s=compute_s / 3,
        backward_s=2 * compute_s / 3,
        send_s=exchange_s(gpus, billions, cards),
        buckets=BUCKETS,
        overhead_s=OVERHEAD_S,
    )


def view(state: State) -> View:
    """What to show for a state."""
    size = (state.billions, state.batch_tokens, state.cards)
    now, alone = step(state.gpus, *size), step(1, *size)
    efficiency = step_time.relative_efficiency(few=1, few_s=alone.total_s, many=state.gpus, many_s=now.total_s)
    counts = [gpus for gpus in GPUS if gpus <= most_gpus(state.batch_tokens)]
    real = [(gpus, state.batch_tokens / step(gpus, *size).total_s) for gpus in counts]
    perfect = [(gpus, gpus * real[0][1]) for gpus in counts]
    waits_s = max(0.0, now.overlappable_s - now.compute_s) + now.exposed_s
    worth = efficiency * state.gpus
    named = f"{state.gpus:,} GPU{'s' * (state.gpus > 1)}"
    figure = scaling_curve(
        real,
        perfect,
        here=(state.gpus, state.batch_tokens / now.total_s),
        title=f"{named} work{'s' * (state.gpus == 1)} like {worth:,.0f}",
        caption=(
            f"{state.billions} billion parameters, {state.batch_tokens:,} tokens per step, plain data parallelism on"
            f" H100s, {state.cards} network card{'s' * (state.cards > 1)} to a node of {NODE}, gradients sent in"
            f" {BUCKETS} buckets. The lines end where a GPU would get less than a sequence of {SEQUENCE:,} tokens."
        ),
    )
    waiting = (
        f"for {fmt_seconds(waits_s)} of it they wait for the exchange"
        if waits_s > 0
        else "no GPU waits for an exchange"
    )
    summary = (
        f"{named}: a step takes {fmt_seconds(now.total_s)}, and {waiting}. Efficiency {fmt_percent(efficiency)}: as"
        f" much as {worth:,.0f} GPU{'s' * (round(worth) != 1)} that never wait{'s' * (round(worth) == 1)}."
    )
    return View(columns=COLUMNS, figure=figure, summary=summary, rows=_rows(state, now, waits_s))


def _rows(state: State, now: step_time.StepTime, waits_s: float) -> tuple[tuple[str, ...], ...]:
    sent_s = exchange_s(state.gpus, state.billions, state.cards)
    rate = step_time.tokens_per_gpu_s(tokens=state.batch_tokens, step_s=now.total_s, num_gpus=state.gpus)
    parts = (("computing", now.compute_s), ("exchange, waited for", waits_s), ("optimiser, launches", now.overhead_s))
    return (
        *((name, fmt_seconds(seconds), fmt_percent(seconds / now.total_s)) for name, seconds in parts),
        ("exchange, hidden behind computing", fmt_seconds(max(0.0, sent_s - waits_s)), "runs beside it"),
        ("progress", fmt_si(rate, "token/s"), "per GPU"),
    )
