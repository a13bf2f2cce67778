"""Count: a router sends tokens to experts one by one, experts fill up and turn tokens away, and a bias learns to hold
the loads together.

Some experts are more popular than others, by a skew. A token likes each expert by its popularity plus a liking of its
own, and takes the top_k it likes most. With a skew of 0 every set of experts is as likely as any other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from threeloops import checks

Floats = NDArray[np.float64]
Choices = NDArray[np.int64]  # [tokens, top_k] of expert numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Router:
    """Experts, how popular each is, and how many a token takes."""

    popularity: Floats
    top_k: int

    @property
    def num_experts(self) -> int:
        return len(self.popularity)

    def choices(self, generator: np.random.Generator, *, tokens: int, bias: Floats | None = None) -> Choices:
        """The experts of each token, the best liked first.

        A bias takes part in the choice and in nothing else, as in Wang et al., 2024.
        """
        likes = self.popularity + generator.gumbel(size=(tokens, self.num_experts)) + (0.0 if bias is None else bias)
        return np.argsort(-likes, axis=1, kind="stable")[:, : self.top_k]


def router(*, num_experts: int, top_k: int, skew: float, seed: int) -> Router:
    """A router whose experts differ in popularity by a normal draw of that width, in units of the logit."""
    checks.count(num_experts=num_experts, top_k=top_k)
    checks.non_negative(skew=skew)
    return Router(popularity=skew * np.random.default_rng(seed).normal(size=num_experts), top_k=top_k)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What became of every choice."""

    loads: tuple[int, ...]  # choices that arrived, per expert
    kept: tuple[int, ...]  # choices that found a place
    lost_tokens: int  # tokens of which no choice found a place
    capacity: int | None

    @property
    def dropped(self) -> int:
        return sum(self.loads) - sum(self.kept)

    @property
    def empty_places(self) -> int:
        """Places that were reserved and stayed empty; they are computed all the same where buffers are padded."""
        return 0 if self.capacity is None else self.capacity * len(self.kept) - sum(self.kept)


def serve(choices: Choices, *, num_experts: int, capacity: int | None) -> Served:
    """Tokens come in order; each of its experts takes it if it has a place left. Capacity None: always.

    >>> serve(np.array([[0], [0], [1], [0]]), num_experts=3, capacity=2)
    Served(loads=(3, 1, 0), kept=(2, 1, 0), lost_tokens=1, capacity=2)
    """
    loads, kept, lost = [0] * num_experts, [0] * num_experts, 0
    for token in choices.tolist():
        found = False
        for expert in token:
            loads[expert] += 1
            if capacity is None or kept[expert] < capacity:
                kept[expert] += 1
                found = True
        lost += not found
    return Served(loads=tuple(loads), kept=tuple(kept), lost_tokens=lost, capacity=capacity)


def balanced_by_bias(
    chooser: Router, generator: np.random.Generator, *, tokens: int, steps: int, update: float
) -> tuple[list[tuple[int, ...]], tuple[float, ...]]:
    """Loads of every step while a bias is raised by `update` for experts below the mean load and lowered for those
    above; and the last bias.

    The rule of Wang et al., 2024, arXiv:2408.15664, algorithm 1 (DeepSeek-V3 uses it with 0.001 on sigmoid scores).
    """
    checks.count(tokens=tokens, steps=steps)
    checks.positive(update=update)
    bias, history = np.zeros(chooser.num_experts), []
    for _ in range(steps):
        loads = np.bincount(chooser.choices(generator, tokens=tokens, bias=bias).ravel(), minlength=chooser.num_experts)
        history.append(tuple(int(load) for load in loads))
        bias += update * np.sign(loads.mean() - loads)
    return history, tuple(float(each) for each in bias)


def in_order(loads: Sequence[int], *, ranks: int) -> list[int]:
    """Load of each rank when experts are dealt out by number: the first few to the first rank.

    >>> in_order([5, 1, 2, 2], ranks=2)
    [6, 4]
    """
    checks.divides(part="ranks", part_value=ranks, whole="experts", whole_value=len(loads))
    each = len(loads) // ranks
    return [sum(loads[rank * each : (rank + 1) * each]) for rank in range(ranks)]


def co_located(loads: Sequence[int], *, ranks: int) -> list[int]:
    """Load of each rank when experts are dealt out by load: the heaviest that is left goes to the lightest rank that
    still has a place.

    >>> in_order([9, 7, 2, 1], ranks=2), co_located([9, 7, 2, 1], ranks=2)
    ([16, 3], [10, 9])
    """
    checks.divides(part="ranks", part_value=ranks, whole="experts", whole_value=len(loads))
    places, held = len(loads) // ranks, [[0, 0] for _ in range(ranks)]  # of each rank: load, experts
    for load in sorted(loads, reverse=True):
        lightest = min((rank for rank in held if rank[1] < places), key=lambda rank: rank[0])
        lightest[0] += load
        lightest[1] += 1
    return [load for load, _ in held]


def visited(choices: Choices, *, num_experts: int, groups: int) -> float:
    """Groups of neighbouring experts that a token's choices fall into, mean over the tokens."""
    each = num_experts // groups
    return float(np.mean([len({expert // each for expert in token}) for token in choices.tolist()]))
