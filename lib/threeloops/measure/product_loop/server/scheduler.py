"""Scheduler: who takes part in the next step, and with how many tokens.

One rule serves prefill and decode: a request has tokens that are not in the cache yet, and the step takes some of
them. While it decodes there is one; with a fresh prompt there are many, and the token budget cuts them into chunks.
"""

import time
from collections import deque
from typing import NamedTuple

from threeloops import checks
from threeloops.measure.product_loop.server.blocks import BlockPool
from threeloops.measure.product_loop.server.generation import Generation


class Share(NamedTuple):
    """A request's part of a step."""

    generation: Generation
    tokens: int


class Scheduler:
    """Requests that wait, requests that run, and the blocks that those hold."""

    def __init__(self, pool: BlockPool, *, slots: int, token_budget: int) -> None:
        checks.count(slots=slots)
        if token_budget < slots:
            raise ValueError(f"token_budget={token_budget} is less than slots={slots}; each slot may need one token")
        self.pool, self.slots, self.token_budget = pool, slots, token_budget
        self.waiting: deque[Generation] = deque()
        self.running: list[Generation] = []  # in the order of admission
        self.preemptions = 0

    def plan(self) -> list[Share]:
        """The next step: decodes first, then prompts in the order of admission, as far as the token budget goes."""
        for generation in [some for some in (*self.waiting, *self.running) if some.cancelled]:
            self.leave(generation)
        self._admit()
        shares, budget = [], self.token_budget
        for generation in sorted(self.running, key=lambda some: some.to_compute > 1):
            tokens = min(generation.to_compute, budget)
            if tokens and generation in self.running and self._has_blocks(generation, tokens):
                shares.append(Share(generation, tokens))
                budget -= tokens
        return [share for share in shares if share.generation in self.running]  # nobody who was preempted since

    def leave(self, generation: Generation) -> None:
        """It is over, for whatever reason: its blocks are free at once."""
        if generation in self.running:
            self.running.remove(generation)
        elif generation in self.waiting:
            self.waiting.remove(generation)
        self._release(generation)

    def _admit(self) -> None:
        """First come, first served, while there is a slot and room for the whole prompt."""
        while self.waiting and len(self.running) < self.slots:
            first = self.waiting[0]
            promised = sum(
                self.pool.blocks_for(some.to_compute + some.cached) - len(some.blocks) for some in self.running
            )
            if self.pool.blocks_for(first.to_compute + 1) > self.pool.free - promised:
                return
            self.running.append(self.waiting.popleft())
            first.admitted_s = first.admitted_s or time.perf_counter()

    def _has_blocks(self, generation: Generation, tokens: int) -> bool:
        """Take what it lacks; while there is none, the youngest gives up its own and computes them again later."""
        while True:
            lacks = self.pool.blocks_for(generation.cached + tokens) - len(generation.blocks)
            taken = self.pool.take(max(0, lacks))
            if taken is not None:
                generation.blocks += taken
                return True
            youngest = self.running[-1]
            self._preempt(youngest)
            if youngest is generation:
                return False

    def _preempt(self, generation: Generation) -> None:
        self.running.remove(generation)
        self._release(generation)
        self.waiting.appendleft(generation)
        generation.preempted += 1
        self.preemptions += 1

    def _release(self, generation: Generation) -> None:
        self.pool.give(generation.blocks)
        generation.blocks, generation.cached = [], 0
