"""The serving simulator against a slow twin: every step on its own, every block with a number, every list searched."""

import random
from dataclasses import dataclass, field

import pytest

from threeloops.simulate.product_loop.serving_policies import KVBlocks, Policy
from threeloops.simulate.product_loop.serving_requests import Request
from threeloops.simulate.product_loop.serving_run import run
from threeloops.simulate.product_loop.serving_steps import AffineStep, StepContents


@dataclass(eq=False)
class Job:
    place: int
    request: Request
    cache: int = 0  # tokens in the cache
    to_read: int = 0  # the prompt, and after a recompute what had been made
    made: list[float] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    borrowed: list[int] = field(default_factory=list)
    user: bool = False
    aside: int = 0  # cached tokens swapped out
    admitted: float | None = None
    shed: bool = False
    preempted: int = 0
    released: float | None = None

    @property
    def ended(self):
        return len(self.made) == self.request.output_tokens


@dataclass
class Shared:
    blocks: list[int] = field(default_factory=list)
    users: int = 0
    left: int = 0  # when its last user left


class Twin:
    def __init__(self, requests, *, step_s, policy, blocks):
        self.jobs = [Job(place, request, to_read=request.prompt_tokens) for place, request in enumerate(requests)]
        self.pending = sorted(self.jobs, key=lambda job: (job.request.arrival_s, job.place))
        self.step_s, self.policy, self.rules = step_s, policy, blocks
        self.waiting, self.running, self.now, self.steps, self.extra = [], [], 0.0, 0, 0.0
        self.free = set(range(blocks.num_blocks)) if blocks else set()
        self.prefixes, self.departures, self.held = {}, 0, 0

    def go(self):
        while self.pending or self.waiting or self.running:
            if not self.waiting and not self.running:
                self.now = max(self.now, self.pending[0].request.arrival_s)
            self.arrive(until=self.now, open_slots=self.policy.slots - len(self.running))
            crowded = self.make_room()
            if not crowded:
                self.admit()
            begun = self.step()
            if begun and self.rules:
                self.check_blocks()
            if all(job.ended for job in self.running) or not self.policy.static:
                for job in sorted([job for job in self.running if job.ended], key=lambda job: job.made[-1]):
                    self.leave(job)
        return self

    def arrive(self, *, until, open_slots):
        while self.pending and self.pending[0].request.arrival_s <= until:
            job = self.pending.pop(0)
            job.shed = self.policy.shed_at is not None and len(self.waiting) - open_slots >= self.policy.shed_at
            if not job.shed:
                self.waiting.append(job)

    # blocks

    def available(self):
        return len(self.free) + sum(len(one.blocks) for one in self.prefixes.values() if not one.users)

    def take(self, job, number):
        while len(self.free) < number:
            oldest = min((one for one in self.prefixes.values() if one.blocks and not one.users), key=lambda x: x.left)
            self.free.add(oldest.blocks.pop())
        job.blocks += [self.free.pop() for _ in range(number)]

    def missing(self, job, tokens):
        return max(0, -(-tokens // self.rules.block_tokens) - len(job.blocks) - len(job.borrowed))

    def decoders(self):
        return [job for job in self.running if job.made and not job.ended and job.cache >= job.to_read]

    def coming(self):
        return sum(self.missing(job, job.cache + 1) for job in self.decoders())

    def make_room(self):
        crowded = False
        while self.rules and self.coming() > self.available():
            ours = [job for job in self.running if not job.ended]
            lowest = min(self.urgency(job) for job in ours)
            self.preempt([job for job in ours if self.urgency(job) == lowest][-1])
            crowded = True
        return crowded

    def urgency(self, job):
        return job.request.priority if self.policy.by_priority else 0

    def preempt(self, job):
        swap = self.rules.preemption == "swap" and job in self.decoders()
        self.extra += -(-job.cache // self.rules.block_tokens) * self.rules.swap_s_per_block if swap else 0
        job.aside = job.cache if swap else 0
        job.to_read = job.to_read if swap else job.request.prompt_tokens + len(job.made)
        job.cache = 0
        job.preempted += 1
        self.give_back(job)
        self.running.remove(job)
        self.waiting.append(job)

    def give_back(self, job):
        self.free |= set(job.blocks)
        if job.user:
            shared = self.prefixes[job.request.prefix]
            shared.users -= 1
            self.departures += 1
            shared.left = self.departures
        job.blocks, job.borrowed, job.user = [], [], False

    def admit(self):
        if self.policy.static and self.running:
            return
        while self.waiting and len(self.running) < self.policy.slots:
            job = min(self.waiting, key=lambda one: (-self.urgency(one), one.place))
            if self.rules and not self.fits(job):
                return
            self.waiting.remove(job)
            self.running.append(job)
            job.admitted = self.now if job.admitted is None else job.admitted
            if job.aside:
                self.extra += -(-job.aside // self.rules.block_tokens) * self.rules.swap_s_per_block
                job.cache, job.aside = job.aside, 0

    def fits(self, job):
        size, name = self.rules.block_tokens, job.request.prefix
        sharing = self.rules.prefix_cache and name is not None and not job.aside
        shared = self.prefixes.setdefault(name, Shared()) if sharing else Shared()
        hit = min(len(shared.blocks), job.request.shared_tokens // size, (job.to_read - 1) // size)
        wanted = -(-(job.aside or job.to_read) // size) - hit
        spare = self.available() - self.coming() - (0 if shared.users else len(shared.blocks))
        spare -= bool(job.aside) and job.aside % size == 0  # it decodes at once
        if wanted > spare and not shared.users:  # the end of a prefix that nobody uses is no use to this one either
            while len(shared.blocks) > hit:
                self.free.add(shared.blocks.pop())
                spare += 1
        if wanted > spare:
            return False
        if sharing:
            shared.users, job.user = shared.users + 1, True
            job.borrowed, job.cache = shared.blocks[:hit], hit * size
        self.take(job, wanted)
        return True

    def read(self, job):
        """A prompt is in the cache: its prefix is everybody's now, and one's own copies of it are not needed."""
        if not job.user:
            return
        shared, number = self.prefixes[job.request.prefix], job.request.shared_tokens // self.rules.block_tokens
        own_of_prefix = job.blocks[: number - len(job.borrowed)]
        job.blocks = job.blocks[len(own_of_prefix) :]
        for position, block in zip(range(len(job.borrowed), number), own_of_prefix, strict=True):
            if position >= len(shared.blocks):
                shared.blocks.append(block)
            else:
                self.free.add(block)
        job.borrowed = shared.blocks[:number]

    def check_blocks(self):
        own = [block for job in self.running for block in job.blocks]
        cached = [block for one in self.prefixes.values() for block in one.blocks]
        assert sorted([*own, *cached, *self.free]) == list(range(self.rules.num_blocks))
        assert all(
            len(job.blocks) + len(job.borrowed) >= -(-job.cache // self.rules.block_tokens) for job in self.running
        )

    # one step

    def step(self):
        readers = [
            job for job in self.running if job.cache < job.to_read and not job.ended and job not in self.decoders()
        ]
        decoders = self.decoders()
        decode_first = self.policy.order == "decode first"
        left = self.policy.token_budget or 10**9
        left -= len(decoders) if decode_first and self.policy.token_budget else 0
        parts = []
        for job in readers:
            part = min(left, job.to_read - job.cache)
            if part:
                parts.append((job, part))
            left -= part
        together = decoders + [job for job in self.running if job.ended]
        if parts and not decode_first:
            decoders = together = []
        if not parts and not decoders:
            return False
        rows = [job for job, _ in parts] + together
        contents = StepContents(sum(part for _, part in parts), len(together), sum(job.cache for job in rows))
        open_slots = 0 if self.policy.static else self.policy.slots - len(self.running)
        end = self.now + self.extra + self.step_s(contents)
        # whoever arrives before the end finds the slots as they are during the step
        while self.pending and self.pending[0].request.arrival_s < end:
            self.arrive(until=self.pending[0].request.arrival_s, open_slots=open_slots)
        self.now, self.extra, self.steps = end, 0.0, self.steps + 1
        for job in decoders:
            if self.rules:
                self.take(job, self.missing(job, job.cache + 1))
            job.cache += 1
            job.made.append(end)
        for job, part in parts:
            job.cache += part
            if job.cache == job.to_read:
                self.read(job)
                job.made.append(end)
        return True

    def leave(self, job):
        job.released = self.now
        self.give_back(job)
        self.running.remove(job)


def some_case(seed):
    """A small case of any kind: a policy, a pool, a model and requests."""
    rng = random.Random(seed)
    slots = rng.choice((1, 2, 3, 5))
    static = rng.random() < 0.2
    order = rng.choice(("decode first", "prefill first"))
    budget = None if static or rng.random() < 0.4 else rng.choice((slots + 1, slots + 4, 17))
    policy = Policy(
        name="some",
        slots=slots,
        static=static,
        order=order,
        token_budget=budget,
        by_priority=rng.random() < 0.3,
        shed_at=rng.choice((None, None, 0, 2)),
    )
    block_tokens = rng.choice((1, 3, 4))
    blocks = KVBlocks(
        num_blocks=-(-rng.choice((34, 40, 60)) // block_tokens),
        block_tokens=block_tokens,
        preemption=rng.choice(("recompute", "swap")),
        swap_s_per_block=rng.choice((0.0, 0.05)),
        prefix_cache=rng.random() < 0.5,
    )
    step_s = AffineStep(
        base_s=rng.choice((0.0, 0.3)),
        per_prefill_token_s=rng.choice((0.0, 0.01)),
        per_decode_s=rng.choice((0.05, 0.2)),
        per_cached_token_s=rng.choice((0.0, 0.004)),
    )
    now, requests = 0.0, []
    for _ in range(rng.randint(1, 25)):
        now += rng.choice((0.0, rng.expovariate(1.3), rng.expovariate(0.4)))
        prompt = rng.randint(1, 18)
        prefix = rng.choice((None, "a", "b", "c"))
        shared = 0 if prefix is None else min(prompt, rng.choice((8, 12)))
        requests.append(Request(now, prompt, rng.randint(1, 16), prefix, shared, rng.choice((0, 0, 1))))
    return requests, policy, rng.choice((None, blocks, blocks)), step_s


@pytest.mark.parametrize("hundred", range(4))
def test_the_twin_says_the_same(hundred):
    seen = {"preempted": 0, "shed": 0, "reused": 0}
    for seed in range(100 * hundred, 100 * hundred + 100):
        requests, policy, blocks, step_s = some_case(seed)
        slow = Twin(requests, step_s=step_s, policy=policy, blocks=blocks).go()
        jumping = run(requests, step_s=step_s, policy=policy, blocks=blocks)
        # a model that is only a callable, one step at a time
        stepping = run(requests, step_s=step_s.__call__, policy=policy, blocks=blocks, keep_steps=True, each_token=True)
        assert jumping.steps == stepping.steps == slow.steps == len(stepping.kept), seed
        for job, jumped, stepped in zip(slow.jobs, jumping.moments, stepping.moments, strict=True):
            assert jumped.shed == stepped.shed == job.shed, seed
            assert jumped.preempted == stepped.preempted == job.preempted, seed
            if job.shed:
                continue
            expected = (job.admitted, job.made[0], job.made[-1], job.released)
            for one in (jumped, stepped):
                assert (one.admitted_s, one.first_token_s, one.finished_s, one.released_s) == pytest.approx(expected), (
                    seed
                )
            assert stepped.token_s == pytest.approx(job.made), seed
        seen["preempted"] += sum(job.preempted for job in slow.jobs)
        seen["shed"] += sum(job.shed for job in slow.jobs)
        seen["reused"] += sum(one.reused_tokens for one in jumping.moments)
    assert min(seen.values()) > 20, f"the cases no longer reach what they should: {seen}"
