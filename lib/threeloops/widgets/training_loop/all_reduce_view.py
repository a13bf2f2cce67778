"""All-reduce view: what the explorer shows for a state, as figure, sentences and table. No widget in here.

>>> print(view(State(algorithm="ring", ranks=4, step=3)).summary)
Step 3 of 6: 4 pieces arrive, 4 of 16 are complete. The busiest rank has sent 0.75 vectors.
"""

import functools
from dataclasses import dataclass

from threeloops import checks
from threeloops.figures.training_loop import chunk_steps
from threeloops.simulate.training_loop.contributions import watched_run
from threeloops.simulate.training_loop.network import Run
from threeloops.training_loop.network.measured_collectives import expected_collective
from threeloops.units import KiB, MiB, fmt_bytes, fmt_seconds
from threeloops.widgets.view import View

ALGORITHMS = {
    "ring": "ring",
    "halving-doubling": "halving-doubling",
    "binomial tree": "binomial-tree",
    "everything through rank 0": "through-root",
}
RANKS, POWERS = (2, 3, 4, 5, 6, 8), (2, 4, 8)
# On whose GPUs the time of such an all-reduce is said, and for which sizes.
TIMED = {
    "no GPU": "",
    "A100": "a100-sxm4-80gb",
    "H100": "h100-sxm5",
    "H200": "h200-sxm",
    "B200": "b200-hgx",
    "L40S": "l40s",
}
TIMED_RANKS, TIMED_BYTES = (2, 4, 8), (64 * KiB, 8 * MiB, 512 * MiB)
COLUMNS = ("rank", "sends in this step", "gets in this step", "complete pieces", "vectors sent so far")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the controls stand."""

    algorithm: str
    ranks: int
    step: int  # how many steps have been made
    timed: str = ""  # the part whose times stand beside it; empty for none

    def __post_init__(self) -> None:
        checks.one_of(ALGORITHMS.values(), algorithm=self.algorithm)
        checks.one_of(TIMED.values(), timed=self.timed)
        checks.count(at_least=0, step=self.step)
        choices = rank_choices(self.algorithm)
        if self.ranks not in choices:
            raise ValueError(
                f"ranks={self.ranks!r} must be one of {', '.join(map(str, choices))} for {self.algorithm!r}"
            )
        if self.step > played(self.algorithm, self.ranks).steps:
            raise ValueError(
                f"step={self.step} must be at most {played(self.algorithm, self.ranks).steps}, the last one"
            )


def rank_choices(algorithm: str) -> tuple[int, ...]:
    """Numbers of ranks that an algorithm can have."""
    return POWERS if algorithm == "halving-doubling" else RANKS


@functools.lru_cache(maxsize=32)
def played(algorithm: str, ranks: int) -> Run:
    """The whole all-reduce, message by message."""
    return watched_run(algorithm, ranks=ranks)


def view(state: State) -> View:
    """What to show for a state: who holds how much of which sum after its step, and what that has cost."""
    done = played(state.algorithm, state.ranks)
    sent = chunk_steps.sent_vectors(done, state.step)
    held = done.states[state.step]
    whole = (1 << state.ranks) - 1
    complete = [sum(piece == whole for piece in pieces) for pieces in held]
    most = max(chunk_steps.sent_vectors(done, done.steps))
    name = next(words for words, key in ALGORITHMS.items() if key == state.algorithm)
    figure = chunk_steps.one_step(
        state.algorithm,
        ranks=state.ranks,
        step=state.step,
        title=f"{name.capitalize()}: {done.steps} steps, and the busiest rank sends {most:.3g} vectors",
        caption=(
            f"{state.ranks} ranks, {state.ranks} pieces each. A number says of how many ranks a piece holds the sum;"
            " an orange rim, that it has just come."
        ),
    )
    before = done.states[max(state.step - 1, 0)]
    came = sum(piece != was for now, old in zip(held, before, strict=True) for piece, was in zip(now, old, strict=True))
    pieces = state.ranks**2
    said = f"{came} {'piece arrives' if came == 1 else 'pieces arrive'}, " if state.step else ""
    summary = (
        f"Step {state.step} of {done.steps}: {said}{sum(complete)} of {pieces} are complete."
        f" The busiest rank has sent {max(sent):.3g} vectors.{_timed(state)}"
    )
    rows = tuple(
        (f"{rank}", *_exchange(done, rank, state.step), f"{complete[rank]}", f"{sent[rank]:.3g}")
        for rank in range(state.ranks)
    )
    return View(columns=COLUMNS, figure=figure, summary=summary, rows=rows)


def _timed(state: State) -> str:
    """What NCCL takes for an all-reduce among so many GPUs of a node, whichever algorithm it chose.

    >>> print(_timed(State(algorithm="ring", ranks=8, step=0, timed="h100-sxm5")))
     On 8 H100 of a node NCCL takes 18.7 µs for 64.0 KiB, 78.9 µs for 8.00 MiB, 2.11 ms for 512 MiB (AIConfigurator).
    """
    if not state.timed:
        return ""
    name = next(words for words, part in TIMED.items() if part == state.timed)
    if state.ranks not in TIMED_RANKS:
        return f" Of {name}, 2, 4 and 8 were timed."
    took = []
    for size in TIMED_BYTES:
        one = expected_collective(state.timed, op="all_reduce", ranks=state.ranks, size_bytes=size)
        took.append(f"{fmt_seconds(one.seconds)} for {fmt_bytes(size, base=2)}")
    return f" On {state.ranks} {name} of a node NCCL takes {', '.join(took)} (AIConfigurator)."


def _exchange(done: Run, rank: int, step: int) -> tuple[str, str]:
    """To whom a rank sends, and from whom it gets, in the step that has just been made."""
    now = [message for message in done.messages if message.step == step - 1]
    to = [f"to {message.destination}" for message in now if message.source == rank]
    came = [f"from {message.source}" for message in now if message.destination == rank]
    return ", ".join(to) or "nothing", ", ".join(came) or "nothing"
