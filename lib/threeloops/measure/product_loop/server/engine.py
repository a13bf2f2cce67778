"""Engine: plans a step, runs the model once for all its tokens, samples, hands the text out; again, until nobody asks.

>>> from threeloops.measure.product_loop.character_decoder import Decoder, DecoderSizes
>>> sizes = DecoderSizes(hidden=32, layers=1, heads=4, kv_heads=2, head_dim=8, intermediate=48)
>>> engine = Engine(Decoder(sizes).eval(), limits=Limits(slots=4, blocks=32))
>>> generation = engine.submit(Order(prompt=[5, 6, 7], max_tokens=2))
>>> (engine.step(), engine.step()) and (len(generation.made), engine.scheduler.pool.free)
(2, 32)
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from threeloops.measure.product_loop.character_decoder import Decoder
from threeloops.measure.product_loop.server.blocks import BlockPool, PagedCache
from threeloops.measure.product_loop.server.errors import Refusal
from threeloops.measure.product_loop.server.generation import Generation, Order, Piece
from threeloops.measure.product_loop.server.metrics import Metrics
from threeloops.measure.product_loop.server.scheduler import Scheduler, Share

STEPS_KEPT = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the engine takes on at most."""

    slots: int = 16  # requests in a step
    token_budget: int = 48  # tokens in a step, those of prompts included
    blocks: int = 256
    block_tokens: int = 16
    most_waiting: int = 64
    context: int = 256  # tokens of prompt and answer together


class StepRecord(NamedTuple):
    """One step that was run: what was in it, and how long the model and the sampler took."""

    prefill_tokens: int
    decodes: int
    cached_tokens: int  # before the step, of all its requests
    seconds: float


Delivery = tuple[Generation, Piece]


class Engine:
    """`submit` and `cancel` may be called from any thread; `step` from one only."""

    def __init__(
        self,
        decoder: Decoder,
        *,
        limits: Limits,
        deliver: Callable[[list[Delivery]], None] = lambda pieces: None,
    ) -> None:
        pool = BlockPool(blocks=limits.blocks, block_tokens=limits.block_tokens)
        if pool.blocks_for(limits.context) > limits.blocks:
            raise ValueError(
                f"blocks={limits.blocks} cannot hold one context of {limits.context} tokens; it takes"
                f" {pool.blocks_for(limits.context)}"
            )
        self.decoder, self.limits, self.deliver = decoder, limits, deliver
        self.cache = PagedCache(decoder.sizes, blocks=limits.blocks, block_tokens=limits.block_tokens)
        self.scheduler = Scheduler(pool, slots=limits.slots, token_budget=limits.token_budget)
        self.metrics = Metrics()
        self.steps: deque[StepRecord] = deque(maxlen=STEPS_KEPT)
        self._work = threading.Condition()  # guards the scheduler
        self._thread: threading.Thread | None = None
        self._stopping = False

    def submit(self, order: Order) -> Generation:
        """Let a request in, or say at once why not."""
        asked = len(order.prompt) + order.max_tokens
        if asked > self.limits.context:
            raise Refusal.bad_request(
                f"this model's context is {self.limits.context} tokens; you asked for {asked}"
                f" ({len(order.prompt)} in the prompt, {order.max_tokens} to write); shorten one of the two.",
                param="max_tokens",
                code="context_length_exceeded",
            )
        with self._work:
            if self._stopping:
                raise Refusal.failed("the server is shutting down; ask another one.", status=503)
            if len(self.scheduler.waiting) >= self.limits.most_waiting:
                raise Refusal.too_many(len(self.scheduler.waiting))
            generation = Generation(order)
            self.scheduler.waiting.append(generation)
            self._work.notify()
        return generation

    def cancel(self, generation: Generation) -> None:
        """Nobody wants the answer any more: the next plan leaves it out and frees its blocks."""
        with self._work:
            generation.cancelled = True
            self._work.notify()

    def step(self) -> bool:
        """Plan and run one step; False where there was nothing to do."""
        with self._work:
            shares = self.scheduler.plan()
        if not shares:
            return False
        begun = time.perf_counter()
        try:
            chosen = self._run(shares)
        except Exception as error:  # whatever the model does, the server lives on and says so
            self._end_all(shares, error)
            return True
        now = time.perf_counter()
        self._record(shares, now - begun)
        pieces = []
        with self._work:
            for share, token in zip(shares, chosen, strict=True):
                share.generation.cached += share.tokens
                if share.generation.to_compute == 0 and not share.generation.cancelled:
                    pieces.append((share.generation, self._accepted(share.generation, token, now)))
        self.deliver(pieces)
        return True

    @torch.no_grad()
    def _run(self, shares: list[Share]) -> list[int]:
        """One pass of the model over all tokens of the step; for each request, the token that would come next."""
        tokens: list[int] = []
        tables: list[list[int]] = []
        places: list[int] = []
        last: list[int] = []
        for generation, count in shares:
            begin = generation.cached
            tokens += generation.known[begin : begin + count]
            tables += [generation.blocks] * count
            places += range(begin, begin + count)
            last.append(len(tokens) - 1)
        scores = self.decoder(torch.tensor(tokens)[:, None], cache=self.cache.step(tables, places))[last, 0]
        likeliest = scores.argmax(dim=-1).tolist()
        return [
            _sampled(share.generation, scores[row]) if share.generation.order.temperature else likeliest[row]
            for row, share in enumerate(shares)
        ]

    def _accepted(self, generation: Generation, token: int, now: float) -> Piece:
        piece = generation.accept(token, now)
        self.metrics.token(generation)
        if piece.finish_reason:
            self._over(generation, piece.finish_reason)
        return piece

    def _over(self, generation: Generation, reason: str) -> None:
        self.scheduler.leave(generation)
        self.metrics.finished(generation, reason)

    def _end_all(self, shares: list[Share], error: Exception) -> None:
        with self._work:
            for generation, _ in shares:
                self._over(generation, "error")
        self.deliver([(generation, Piece(str(error), "error")) for generation, _ in shares])

    def _record(self, shares: list[Share], seconds: float) -> None:
        decodes = sum(share.tokens == 1 and bool(share.generation.made) for share in shares)
        record = StepRecord(
            prefill_tokens=sum(share.tokens for share in shares) - decodes,
            decodes=decodes,
            cached_tokens=sum(share.generation.cached for share in shares),
            seconds=seconds,
        )
        self.steps.append(record)
        self.metrics.steps += 1
        self.metrics.step_s += seconds
        self.metrics.in_steps = [total + new for total, new in zip(self.metrics.in_steps, record[:3], strict=True)]

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Step in a thread of its own until `stop`."""
        self._thread = threading.Thread(target=self._loop, name="engine", daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float = 10.0) -> None:
        with self._work:
            self._stopping = True
            self._work.notify()
        if self._thread:
            self._thread.join(timeout_s)

    def _loop(self) -> None:
        while not self._stopping:
            if not self.step():
                with self._work:
                    if not self.scheduler.waiting and not self._stopping:
                        self._work.wait(timeout=1.0)


def _sampled(generation: Generation, scores: Tensor) -> int:
    """Drawn from the model's shares; each request draws from numbers of its own, so that a seed means something in any
    company.
    """
    if generation.random is None:
        generation.random = torch.Generator()
        seed = generation.order.seed
        generation.random.manual_seed(int.from_bytes(os.urandom(7)) if seed is None else seed)
    shares = (scores / generation.order.temperature).softmax(-1)
    return int(torch.multinomial(shares, 1, generator=generation.random))
