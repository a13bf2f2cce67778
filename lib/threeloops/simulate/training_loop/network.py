"""A network of ranks that exchange real arrays, step by step, and write down every message.

Each rank has one port: in one step it sends at most one message and receives at most one. The log is all that a
result is read from.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from threeloops import checks

# numpy's arrays, or what is added and cut like them: whoever moves sets of ranks (contributions.py) needs no numpy.
if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]
else:
    Array: TypeAlias = Any

State: TypeAlias = "tuple[tuple[Any, ...], ...]"  # [rank][element]


class Message(NamedTuple):
    """One transfer over one link."""

    step: int
    source: int
    destination: int
    num_bytes: int


@dataclass(slots=True)
class Network:
    """The ranks, and what has been sent so far."""

    ranks: int
    steps: int = 0
    messages: list[Message] = field(default_factory=list)
    watched: Sequence[Array] = ()  # buffers, one per rank, whose contents are kept from before each step
    states: list[State] = field(default_factory=list)

    def exchange(self, sends: Sequence[tuple[int, int, Array]]) -> list[Array]:
        """One step: (source, destination, array) each; returns what arrived, in the same order, as copies.

        Nobody sees what another receives in the same step: the arrays are copied before anything is handed over.
        """
        sources = {source for source, _, _ in sends}
        destinations = {destination for _, destination, _ in sends}
        # A second message at a port would have to wait for the next step: the algorithm would be miscounted.
        assert len(sources) == len(destinations) == len(sends), f"step {self.steps}: a rank sends or receives twice"
        assert all(source != destination for source, destination, _ in sends)
        if self.watched:
            self.states.append(_looked_at(self.watched))
        self.messages += [
            Message(self.steps, source, destination, array.nbytes) for source, destination, array in sends
        ]
        self.steps += 1
        return [array.copy() for _, _, array in sends]


@dataclass(frozen=True, slots=True)
class Run:
    """A finished collective: what every rank holds, and every message that it took."""

    outputs: tuple[Array, ...]
    steps: int
    messages: tuple[Message, ...]
    states: tuple[State, ...] = ()  # of a watched run: before the first step and after every step

    @property
    def ranks(self) -> int:
        return len(self.outputs)

    @property
    def total_bytes(self) -> int:
        """Bytes that all links have carried."""
        return sum(message.num_bytes for message in self.messages)

    @property
    def sent_bytes(self) -> tuple[int, ...]:
        """Bytes that each rank has sent."""
        sent: Counter[int] = Counter()
        for message in self.messages:
            sent[message.source] += message.num_bytes
        return tuple(sent[rank] for rank in range(self.ranks))

    @property
    def link_bytes(self) -> dict[tuple[int, int], int]:
        """Per link that was used, as (source, destination)."""
        links: Counter[tuple[int, int]] = Counter()
        for message in self.messages:
            links[message.source, message.destination] += message.num_bytes
        return dict(links)

    def seconds(self, *, alpha_s: float, bytes_per_s_one_way: float) -> float:
        """Time on equal links: each step lasts alpha plus its longest message."""
        checks.non_negative(alpha_s=alpha_s)
        checks.positive(bytes_per_s_one_way=bytes_per_s_one_way)
        return self.seconds_over(lambda source, destination: (alpha_s, bytes_per_s_one_way))

    def seconds_over(self, link: Callable[[int, int], tuple[float, float]]) -> float:
        """Time on unequal links: `link(source, destination)` gives (alpha, bytes/s one way); a step waits for its
        slowest message.
        """
        slowest: dict[int, float] = {}
        for step, source, destination, num_bytes in self.messages:
            alpha_s, bytes_per_s_one_way = link(source, destination)
            slowest[step] = max(slowest.get(step, 0.0), alpha_s + num_bytes / bytes_per_s_one_way)
        return math.fsum(slowest.values())


def vectors(inputs: Sequence[Array]) -> list[Array]:
    """Copies of one vector per rank, refused unless they are vectors of one length and type."""
    if not inputs:
        raise ValueError("inputs=[] must hold one vector per rank")
    shapes = {(array.shape, array.dtype) for array in inputs}
    if len(shapes) > 1 or inputs[0].ndim != 1:
        raise ValueError(
            f"inputs of {sorted(str(shape) for shape, _ in shapes)} must be vectors of one length and type"
        )
    return [array.copy() for array in inputs]


def cuts(length: int, parts: int) -> list[slice]:
    """A vector of any length in `parts` pieces that differ by one element at most.

    >>> cuts(5, 2)
    [slice(0, 2, None), slice(2, 5, None)]
    """
    checks.count(parts=parts)
    return [slice(part * length // parts, (part + 1) * length // parts) for part in range(parts)]


def zeros(length: int, *, like: Array) -> Array:
    """Room for a vector of that length and the type of another."""
    import numpy as np

    return np.zeros(length, dtype=like.dtype)


def _looked_at(watched: Sequence[Array]) -> State:
    return tuple(tuple(buffer.tolist()) for buffer in watched)


def finished(network: Network, outputs: Sequence[Array]) -> Run:
    states = (*network.states, _looked_at(network.watched)) if network.watched else ()
    return Run(
        outputs=tuple(outputs),
        steps=network.steps,
        messages=tuple(network.messages),
        states=states,
    )
