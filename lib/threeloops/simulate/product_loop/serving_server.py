"""One server that takes steps: at each it admits whom it can, reads prompts and decodes, as its policy says.

A step is begun knowing what has arrived by then, and is not changed once begun. Steps in which nobody joins, leaves or
runs out of blocks only add up; where the step model can add them itself, they are taken in one jump.
"""

import heapq
import math

from threeloops.simulate.product_loop.serving_blocks import BlockCount, NoLimit
from threeloops.simulate.product_loop.serving_policies import KVBlocks, Policy
from threeloops.simulate.product_loop.serving_requests import Moments, Sequence
from threeloops.simulate.product_loop.serving_steps import AddsUp, Step, StepContents, StepModel, Stretch

Chunk = tuple[Sequence, int]  # a sequence, and how many tokens of its prompt a step reads


class Server:
    """One engine: `add` requests in the order of their arrival and `advance` it from one arrival to the next."""

    def __init__(
        self,
        *,
        step_s: StepModel,
        policy: Policy,
        blocks: KVBlocks | None = None,
        keep_steps: bool = False,
        each_token: bool = False,
        keep_stretches: bool = False,
        begin_s: float = 0.0,
    ) -> None:
        self.step_s, self.policy = step_s, policy
        self.blocks, self.limited = NoLimit() if blocks is None else BlockCount(blocks), blocks is not None
        self.each_token, self.kept = each_token, list[Step]() if keep_steps else None
        # jumps need a model that can add up steps, and nobody who wants to see each
        self.affine = step_s if isinstance(step_s, AddsUp) and not (keep_steps or each_token) else None
        self.now, self.busy_s, self.swapping_s = begin_s, 0.0, 0.0
        self.steps = self.decode_steps = 0
        self.decoded_s = list[float]()  # of each decode step its end, where each token is wanted
        self.stretches = list[Stretch]() if keep_stretches else None
        self.waiting: list[tuple[int, int, Sequence]] = []
        self.reading: list[Sequence] = []
        self.decoding: set[Sequence] = set()
        self.ends: list[tuple[int, int, Sequence]] = []  # a heap: who ends at which count of decode steps
        self.held: list[Sequence] = []  # of a static batch, those that have ended
        self.cached = 0  # tokens in the caches of decoding and held sequences
        self.free_slots = list(range(policy.slots))
        self.open_slots = policy.slots  # free when the latest step began, and takeable
        self.admissions = 0

    @property
    def in_flight(self) -> int:
        """Requests that are here: waiting, reading or decoding."""
        return len(self.waiting) + len(self.reading) + len(self.decoding)

    def add(self, moments: Moments, *, read: bool = False) -> None:
        """A request arrives; `read` where another server has computed its prompt and its first token."""
        self.blocks.refuse(moments)
        if self._full(moments.request.arrival_s):
            moments.shed = True
            return
        sequence = Sequence(moments)
        if read:
            sequence.produced, sequence.unread, sequence.done = 1, False, sequence.prompt
        self.queue(sequence, at=moments.request.arrival_s)

    def queue(self, sequence: Sequence, *, at: float) -> None:
        """A sequence waits here from now on."""
        if not self.in_flight:
            self.now = max(self.now, at)
        self._wait(sequence)

    def withdraw(self) -> list[Sequence]:
        """Whoever waits for a first slot, to be queued elsewhere; who was preempted stays."""
        new = [entry for entry in self.waiting if math.isnan(entry[2].moments.admitted_s)]
        self.waiting = [entry for entry in self.waiting if entry not in new]
        heapq.heapify(self.waiting)
        return [sequence for _, _, sequence in new]

    def _full(self, moment: float) -> bool:
        if self.policy.shed_at is None:
            return False
        # slots that a step being taken will free are not free yet
        open_slots = self.open_slots if moment < self.now else len(self.free_slots)
        return len(self.waiting) - open_slots >= self.policy.shed_at

    def _wait(self, sequence: Sequence) -> None:
        heapq.heappush(self.waiting, (self._last(sequence.moments), sequence.moments.place, sequence))

    def _last(self, moments: Moments) -> int:
        return -moments.request.priority if self.policy.by_priority else 0

    def advance(self, until: float) -> None:
        """Begin every step that begins before `until`; the last one may end later."""
        while self.now < until and (self.waiting or self.reading or self.decoding):
            crowded = self.limited and self._make_room()
            if self.waiting and not crowded:
                self._admit()
            self.open_slots = 0 if self.policy.static else len(self.free_slots)
            chunks = self._chunks() if self.reading else []
            if chunks:
                self._read(chunks)
            elif self.decoding:
                self._decode(until, one=crowded)  # then look again whom one can admit
            if self.held:
                self._release_batch()

    def _chunks(self) -> list[Chunk]:
        """What the coming step reads of the prompts: all, or what the budget leaves, first admitted first."""
        budget = self.policy.token_budget
        if budget is None:
            whole = [(sequence, sequence.prompt - sequence.done) for sequence in self.reading]
            return whole[: self.policy.prompts_in_a_step([tokens for _, tokens in whole])]
        left = budget - (len(self.decoding) if self.policy.order == "decode first" else 0)
        most = self.policy.long_prefill_token_threshold or budget
        chunks = []
        for sequence in self.reading:
            tokens = min(left, most, sequence.prompt - sequence.done)
            if tokens <= 0:
                break
            chunks.append((sequence, tokens))
            left -= tokens
        return chunks

    def _read(self, chunks: list[Chunk]) -> None:
        decoding = self.policy.order == "decode first"
        tokens = cached = 0
        for sequence, some in chunks:
            tokens += some
            cached += sequence.done
        rows = len(self.decoding) + len(self.held) if decoding else 0
        contents = StepContents(tokens, rows, cached + (self.cached if decoding else 0))
        self._pass(contents, self.step_s(contents))
        if decoding and self.decoding:
            self._decoded(1)
        for sequence, some in chunks:
            sequence.done += some
            if sequence.done == sequence.prompt:
                self.reading.remove(sequence)
                self._answer(sequence)

    def _decode(self, until: float, *, one: bool) -> None:
        contents = StepContents(0, len(self.decoding) + len(self.held), self.cached)
        first_s = self.step_s(contents)
        if one or self.affine is None or self.swapping_s:
            self._pass(contents, first_s)
            self._decoded(1)
            return
        growing = len(self.decoding)
        steps = self.blocks.steps(self.decode_steps, self._to_next_end())
        seconds = self.affine.steps_s(first_s, steps, growing)
        if self.now + seconds >= until:  # begin only those steps that begin before
            steps = self._steps_before(until, first_s, most=steps)
            seconds = self.affine.steps_s(first_s, steps, growing)
        self.busy_s += seconds
        self.now += seconds
        self.steps += steps
        self._decoded(steps, first_s)

    def _to_next_end(self) -> int:
        while self.ends[0][2].last != self.ends[0][0]:  # preempted meanwhile
            heapq.heappop(self.ends)
        return self.ends[0][0] - self.decode_steps

    def _steps_before(self, until: float, first_s: float, *, most: int) -> int:
        assert self.affine is not None
        growing = len(self.decoding)
        steps = max(1, min(most, self.affine.steps_in(first_s, until - self.now, growing)))
        while steps > 1 and self.now + self.affine.steps_s(first_s, steps - 1, growing) >= until:
            steps -= 1
        while steps < most and self.now + self.affine.steps_s(first_s, steps, growing) < until:
            steps += 1
        return steps

    def _pass(self, contents: StepContents, seconds: float) -> None:
        """The time of one step, and of what was swapped before it."""
        begin, self.now = self.now, self.now + self.swapping_s + seconds
        self.swapping_s = 0.0
        self.steps += 1
        self.busy_s += self.now - begin
        if self.kept is not None:
            self.kept.append(Step(begin, self.now, contents))

    def _decoded(self, steps: int, each_s: float = 0.0) -> None:
        """Everybody who decodes has so many tokens more, after the first as many seconds apart."""
        self.blocks.decoded(self.decode_steps, steps)
        self.decode_steps += steps
        self.cached += steps * len(self.decoding)
        if self.each_token:
            self.decoded_s.append(self.now)
        if self.stretches is not None:
            self.stretches.append((self.decode_steps, steps, self.now - (steps - 1) * each_s, each_s, self.now))
        while self.ends and self.ends[0][0] <= self.decode_steps:
            last, _, sequence = heapq.heappop(self.ends)
            if sequence.last == last:
                self._end(sequence, self._stop_decoding(sequence))

    def _answer(self, sequence: Sequence) -> None:
        """A prompt is read, and with that its next token is there: the first one, unless it was preempted before."""
        moments = sequence.moments
        sequence.unread = False
        sequence.produced += 1
        self.blocks.read(sequence)
        if math.isnan(moments.first_token_s):
            moments.first_token_s = self.now
        if self.each_token:
            moments.token_s.append(self.now)
        if sequence.produced == moments.request.output_tokens:
            self._end(sequence, sequence.prompt)
        else:
            self._begin_decoding(sequence, sequence.prompt)

    def _begin_decoding(self, sequence: Sequence, context: int) -> None:
        self.decoding.add(sequence)
        self.cached += context
        sequence.since = self.decode_steps
        sequence.last = self.decode_steps + sequence.moments.request.output_tokens - sequence.produced
        heapq.heappush(self.ends, (sequence.last, sequence.admission, sequence))
        self.blocks.grow(context, at=self.decode_steps)

    def _stop_decoding(self, sequence: Sequence) -> int:
        """A sequence decodes no more: the tokens in its cache."""
        self.decoding.remove(sequence)
        sequence.moments.decoded.append((sequence.since, self.decode_steps))
        if self.each_token:
            sequence.moments.token_s += self.decoded_s[sequence.since :]
        sequence.produced = sequence.moments.request.output_tokens - (sequence.last - self.decode_steps)
        sequence.last = -1
        first = sequence.moments.request.prompt_tokens
        context = first + sequence.produced - 1  # the newest token is not in the cache yet
        self.cached -= context
        self.blocks.stop(context, at=self.decode_steps)
        return context

    def _end(self, sequence: Sequence, context: int) -> None:
        sequence.moments.finished_s = self.now
        if self.policy.static:  # keeps its row, its blocks and its slot until the batch has ended
            sequence.done = context
            self.held.append(sequence)
            self.cached += context
        else:
            self._leave(sequence, context)

    def _leave(self, sequence: Sequence, context: int) -> None:
        sequence.moments.released_s = self.now
        self.blocks.release(sequence, context=context)
        heapq.heappush(self.free_slots, sequence.moments.slot)

    def _release_batch(self) -> None:
        if self.reading or self.decoding:
            return
        for sequence in self.held:
            self.cached -= sequence.done
            self._leave(sequence, sequence.done)
        self.held = []

    def _admit(self) -> None:
        if self.policy.static and (self.reading or self.decoding or self.held):
            return
        while self.waiting and self.free_slots and self.blocks.admit(self.waiting[0][2], at=self.decode_steps):
            self._enter(heapq.heappop(self.waiting)[2])

    def _enter(self, sequence: Sequence) -> None:
        moments = sequence.moments
        moments.slot = heapq.heappop(self.free_slots)
        if math.isnan(moments.admitted_s):
            moments.admitted_s = self.now
        self.admissions += 1
        sequence.admission = self.admissions
        if sequence.unread:
            self.reading.append(sequence)
            return
        context = sequence.context
        self.swapping_s += self.blocks.swap_s(context) if sequence.swapped else 0.0
        sequence.swapped = False
        self._begin_decoding(sequence, context)

    def _make_room(self) -> bool:
        """Preempt until everyone who decodes can have the block of its next token; whether anybody had to go."""
        crowded = False
        while self.blocks.crowded(self.decode_steps):
            first = max((*self.decoding, *self.reading), key=lambda one: (self._last(one.moments), one.admission))
            self._preempt(first)
            crowded = True
        return crowded

    def _preempt(self, sequence: Sequence) -> None:
        sequence.moments.preempted += 1
        reading = sequence.unread
        context = sequence.prompt if reading else self._stop_decoding(sequence)
        self.blocks.release(sequence, context=context)
        sequence.swapped = self.blocks.swaps and not reading
        self.swapping_s += self.blocks.swap_s(context) if sequence.swapped else 0.0
        if reading:
            self.reading.remove(sequence)
        if not sequence.swapped:
            sequence.prompt = sequence.moments.request.prompt_tokens + sequence.produced
            sequence.done, sequence.unread = 0, True
        heapq.heappush(self.free_slots, sequence.moments.slot)
        self._wait(sequence)
