"""One training step on every rank at once, under a stage of ZeRO: which shard of which layer lies where after each
piece of work, and what has been sent for it.

Nothing here knows how many bytes a stage keeps or how many models it sends.

>>> played = play(stage=2, ranks=4, layers=3)
>>> played.most_bytes, played.sent_models
(6.0, 1.5)
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from threeloops import checks

STAGES = (0, 1, 2, 3)
Content = TypeVar("Content")
OLD, NEW = "old", "new"  # weights before and after this step's update
SIZES = {"weights": 2, "gradients": 2, "optimiser": 12}  # bytes a parameter: mixed precision with Adam


@dataclass(slots=True, kw_only=True)
class Kept:
    """What one rank keeps of one layer, by shard."""

    weights: dict[int, str]  # OLD or NEW
    gradients: dict[int, frozenset[int]] = field(default_factory=dict)  # the ranks whose gradients are in the sum
    optimiser: frozenset[int] = frozenset()

    def copy(self) -> "Kept":
        return Kept(weights=dict(self.weights), gradients=dict(self.gradients), optimiser=self.optimiser)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What has just been done, and how things stand."""

    what: str  # start, gather, forward, backward, all-reduce, scatter, update or end
    layer: int  # counted from 1; 0 where it is none alone
    kept: tuple[tuple[Kept, ...], ...]  # by rank, by layer
    sent_shards: tuple[int, ...]  # by rank, since the start


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedRanks:
    """Everything that happened."""

    ranks: int
    layers: int
    moments: tuple[Moment, ...]

    def held_bytes(self, moment: Moment, rank: int) -> float:
        """Bytes that a rank keeps, per parameter of the model."""
        kept = moment.kept[rank]
        counts = {name: sum(len(getattr(layer, name)) for layer in kept) for name in SIZES}
        return sum(size * counts[name] for name, size in SIZES.items()) / (self.ranks * self.layers)

    def sent(self, moment: Moment, rank: int) -> float:
        """What a rank has sent so far, in models: all weights, or as many gradients, are one."""
        return moment.sent_shards[rank] / (self.ranks * self.layers)

    @property
    def most_bytes(self) -> float:
        """Bytes a parameter that a rank keeps at the worst moment."""
        return max(self.held_bytes(moment, rank) for moment in self.moments for rank in range(self.ranks))

    @property
    def rest_bytes(self) -> float:
        """Bytes a parameter between two steps."""
        return max(self.held_bytes(self.moments[-1], rank) for rank in range(self.ranks))

    @property
    def sent_models(self) -> float:
        """What the busiest rank sends in the step."""
        return max(self.sent(self.moments[-1], rank) for rank in range(self.ranks))


def play(*, stage: int, ranks: int, layers: int) -> PlayedRanks:
    """Play one step with one micro-batch; stage 0 is plain data parallelism. Rank r owns shard r of each layer. A rank
    drops what it need not keep when the next piece of work begins.

    Assumes:  mixed precision with Adam, 2 + 2 + 12 bytes a parameter; layers of one size, sent as they are; collectives
              by rings; stage 1 keeps its whole gradients until the update; stage 3 gathers every layer in both passes
    Raises:   ValueError for a stage other than 0 to 3, fewer than two ranks or no layer
    Source:   Rajbhandari et al., ZeRO, 2019, arXiv:1910.02054, sections 5 and 7
    """
    if stage not in STAGES:
        raise ValueError(f"stage={stage!r} must be 0, 1, 2 or 3")
    checks.count(at_least=2, ranks=ranks)
    checks.count(layers=layers)
    step = _Step(stage=stage, ranks=ranks, layers=layers)
    step.note("start")
    for layer in range(1, layers + 1):
        step.forward(layer)
    for layer in range(layers, 0, -1):
        step.backward(layer)
    step.update()
    return PlayedRanks(ranks=ranks, layers=layers, moments=tuple(step.moments))


class _Step:
    """The ranks at work."""

    def __init__(self, *, stage: int, ranks: int, layers: int) -> None:
        self.stage, self.ranks, self.layers = stage, ranks, layers
        self.sent = [0] * ranks
        self.moments: list[Moment] = []
        self.to_drop: list[Callable[[], None]] = []
        everything = range(ranks)
        self.kept = [
            [
                Kept(
                    weights=dict.fromkeys([rank] if stage == 3 else everything, OLD),
                    optimiser=frozenset(everything if stage == 0 else [rank]),
                )
                for _ in range(layers)
            ]
            for rank in everything
        ]

    def note(self, what: str, layer: int = 0) -> None:
        kept = tuple(tuple(one.copy() for one in rank) for rank in self.kept)
        self.moments.append(Moment(what=what, layer=layer, kept=kept, sent_shards=tuple(self.sent)))

    def begin(self) -> None:
        for drop in self.to_drop:
            drop()
        self.to_drop.clear()

    def of_layer(self, layer: int) -> list[Kept]:
        return [rank[layer - 1] for rank in self.kept]

    def forward(self, layer: int) -> None:
        self.fetch(layer)
        self.begin()
        self.note("forward", layer)
        self.let_weights_go(layer)

    def backward(self, layer: int) -> None:
        self.fetch(layer)
        self.begin()
        for rank, kept in enumerate(self.of_layer(layer)):
            kept.gradients = {shard: frozenset([rank]) for shard in kept.weights}
        self.note("backward", layer)
        self.let_weights_go(layer)
        self.begin()
        gradients = [kept.gradients for kept in self.of_layer(layer)]
        self.ring_reduce(gradients)
        if self.stage == 0:
            self.ring_gather(gradients)
        elif self.stage >= 2:
            self.to_drop.append(lambda: self.keep_own(gradients))
        self.note("all-reduce" if self.stage == 0 else "scatter", layer)

    def update(self) -> None:
        self.begin()
        for kept in self.each():
            kept.weights |= dict.fromkeys(kept.optimiser, NEW)
        self.note("update")
        for kept in self.each():
            kept.gradients.clear()
        if self.stage in (1, 2):
            for layer in range(1, self.layers + 1):
                self.ring_gather([kept.weights for kept in self.of_layer(layer)])
                self.note("gather", layer)
        self.note("end")

    def fetch(self, layer: int) -> None:
        """Stage 3 has a shard of the weights and needs them all."""
        if self.stage == 3:
            self.begin()
            self.ring_gather([kept.weights for kept in self.of_layer(layer)])
            self.note("gather", layer)

    def let_weights_go(self, layer: int) -> None:
        if self.stage == 3:
            weights = [kept.weights for kept in self.of_layer(layer)]
            self.to_drop.append(lambda: self.keep_own(weights))

    def each(self) -> Iterable[Kept]:
        return (one for rank in self.kept for one in rank)

    def keep_own(self, held: list[dict[int, Content]]) -> None:
        for rank, shards in enumerate(held):
            for shard in [shard for shard in shards if shard != rank]:
                del shards[shard]

    def ring_gather(self, held: list[dict[int, Content]]) -> None:
        """Each rank passes on what it got last, and begins with its own shard."""
        for hop in range(self.ranks - 1):
            messages = [(rank, (rank - hop) % self.ranks) for rank in range(self.ranks)]
            arriving = [(rank, shard, held[rank][shard]) for rank, shard in messages]
            for rank, shard, content in arriving:
                held[(rank + 1) % self.ranks][shard] = content
                self.sent[rank] += 1

    def ring_reduce(self, held: list[dict[int, frozenset[int]]]) -> None:
        """Each rank adds what arrives to its own and passes the sum on; rank r ends with the whole sum of shard r."""
        for hop in range(self.ranks - 1):
            messages = [(rank, (rank - 1 - hop) % self.ranks) for rank in range(self.ranks)]
            arriving = [(rank, shard, held[rank][shard]) for rank, shard in messages]
            for rank, shard, content in arriving:
                held[(rank + 1) % self.ranks][shard] |= content
                self.sent[rank] += 1
