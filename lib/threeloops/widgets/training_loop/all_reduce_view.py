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
from threeloops.widgets.view import View

ALGORITHMS = {
    "ring": "ring",
    "halving-doubling": "halving-doubling",
    "binomial tree": "binomial-tree",
    "everything through rank 0": "through-root",
}
RANKS, POWERS = (2, 3, 4, 5, 6, 8), (2, 4, 8)
COLUMNS = ("rank", "sends in this step", "gets in this step", "complete pieces", "vectors sent so far")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the controls stand."""

    algorithm: str
    ranks: int
    step: int  # how many steps have been made

    def __post_init__(self) -> None:
        checks.one_of(ALGORITHMS.values(), algorithm=self.algorithm)
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
        f" The busiest rank has sent {max(sent):.3g} vectors."
    )
    rows = tuple(
        (f"{rank}", *_exchange(done, rank, state.step), f"{complete[rank]}", f"{sent[rank]:.3g}")
        for rank in range(state.ranks)
    )
    return View(columns=COLUMNS, figure=figure, summary=summary, rows=rows)


def _exchange(done: Run, rank: int, step: int) -> tuple[str, str]:
    """To whom a rank sends, and from whom it gets, in the step that has just been made."""
    now = [message for message in done.messages if message.step == step - 1]
    to = [f"to {message.destination}" for message in now if message.source == rank]
    came = [f"from {message.source}" for message in now if message.destination == rank]
    return ", ".join(to) or "nothing", ", ".join(came) or "nothing"
