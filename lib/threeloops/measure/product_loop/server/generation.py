"""Generation: one request inside the engine, and the moments of its life."""

import time
from dataclasses import dataclass, field

import torch

from threeloops.measure.product_loop import character_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a request asks for, checked."""

    prompt: list[int]
    max_tokens: int
    temperature: float = 1.0
    stop: tuple[str, ...] = ()
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """What the engine tells about a request after a step: text that can be sent, and whether that was all."""

    text: str
    finish_reason: str | None = None  # "length", "stop", "error"


@dataclass(slots=True, eq=False)
class Generation:
    """An order, what has been made of it, and where it stands."""

    order: Order
    made: list[int] = field(default_factory=list)
    cached: int = 0  # tokens whose keys and values lie in its blocks
    blocks: list[int] = field(default_factory=list)
    sent: int = 0  # characters of the answer that were let out
    cancelled: bool = False
    preempted: int = 0
    random: torch.Generator | None = None  # where its samples come from, once it draws
    arrived_s: float = field(default_factory=time.perf_counter)
    admitted_s: float = 0.0
    token_s: list[float] = field(default_factory=list)  # the moment of each token

    @property
    def known(self) -> list[int]:
        """All tokens so far, the prompt's and its own."""
        return self.order.prompt + self.made

    @property
    def to_compute(self) -> int:
        """Tokens not in the cache: the prompt at first, one while it decodes, everything after a preemption."""
        return len(self.order.prompt) + len(self.made) - self.cached

    def accept(self, token: int, moment: float) -> Piece:
        """Take the next token; say which text may be sent. Text that may be the beginning of a stop string waits."""
        self.made.append(token)
        self.token_s.append(moment)
        text = character_text.read_back(self.made)
        ends = [found for stop in self.order.stop if (found := text.find(stop)) >= 0]
        full = len(self.made) >= self.order.max_tokens
        safe = min(ends) if ends else len(text) if full else len(text) - self._held_back(text)
        piece = Piece(text[self.sent : safe], "stop" if ends else "length" if full else None)
        self.sent = max(self.sent, safe)
        return piece

    def _held_back(self, text: str) -> int:
        """How many of the last characters could still become a stop string."""
        return max(
            (size for stop in self.order.stop for size in range(1, len(stop)) if text.endswith(stop[:size])), default=0
        )
