"""Request stream: requests arrive, are given memory by a block allocator, grow by a token a step, and leave; what is
reserved and what is written is looked up at every step.

Reserving in advance is the same allocator with one block per request, as long as the longest answer that anybody may
get.

>>> requests = [StreamedRequest(arrives=0, prompt=6, answer=3), StreamedRequest(arrives=1, prompt=5, answer=2)]
>>> for block_tokens in (16, 4):
...     stream = play(requests, pool_tokens=16, block_tokens=block_tokens)
...     print(stream.steps, stream.moments[1])
5 Moment(step=1, running=1, reserved=16, written=8)
4 Moment(step=1, running=2, reserved=16, written=14)

Source: Kwon et al., 2023, arXiv:2309.06180, sections 3.1 (reservation) and 4.5 (preemption, the newest first)
"""

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from threeloops import checks
from threeloops.simulate.product_loop.block_allocator import BlockAllocator


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedRequest:
    """A request on a clock of steps; serving_requests.Request is on one of seconds."""

    arrives: int  # step
    prompt: int  # tokens
    answer: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A step, after everybody has written."""

    step: int
    running: int
    reserved: int  # slots
    written: int

    @property
    def unwritten(self) -> int:
        return self.reserved - self.written


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    moments: tuple[Moment, ...]
    preemptions: int
    recomputed: int  # tokens that were written, lost and written again

    @property
    def steps(self) -> int:
        return len(self.moments)

    @property
    def most_running(self) -> int:
        return max(moment.running for moment in self.moments)

    @property
    def written_share(self) -> float:
        """The share of all slots reserved, over all steps, that held a token."""
        return sum(moment.written for moment in self.moments) / sum(moment.reserved for moment in self.moments)


def random_requests(
    number: int, *, seed: int, every: int, prompt: tuple[int, int], answer: tuple[int, int]
) -> list[StreamedRequest]:
    """One request every so many steps, with lengths drawn evenly between two bounds."""
    rng = random.Random(seed)
    return [
        StreamedRequest(arrives=place * every, prompt=rng.randint(*prompt), answer=rng.randint(*answer))
        for place in range(number)
    ]


def play(requests: Sequence[StreamedRequest], *, pool_tokens: int, block_tokens: int) -> Stream:
    """Serve all requests in the order of their arrival; whoever finds no block sends the newest one back to the queue.

    Raises: ValueError if a request is longer than the pool or, with one block per request, than the block
    """
    longest = max(request.prompt + request.answer for request in requests)
    blocks = pool_tokens // block_tokens
    checks.count(blocks=blocks)
    if -(-longest // block_tokens) > blocks:
        raise ValueError(f"a request of {longest} tokens does not fit into pool_tokens={pool_tokens}; give it more")
    pages = BlockAllocator(num_blocks=blocks, block_tokens=block_tokens)
    waiting: deque[int] = deque()
    coming = deque(sorted(range(len(requests)), key=lambda name: requests[name].arrives))
    running: list[int] = []  # the newest last
    made = [0] * len(requests)  # tokens of the answer
    moments: list[Moment] = []
    preemptions = recomputed = 0
    while coming or waiting or running:
        step = len(moments)
        while coming and requests[coming[0]].arrives <= step:
            waiting.append(coming.popleft())
        while waiting and _fits(pages, requests[waiting[0]].prompt + made[waiting[0]]):
            name = waiting.popleft()
            pages.grow(str(name), tokens=requests[name].prompt + made[name])
            running.append(name)
        for name in list(running):
            if name not in running:
                continue  # sent back by somebody before it
            while not pages.free_blocks and pages.lengths[str(name)] % block_tokens == 0:
                victim = running.pop()
                recomputed += pages.lengths[str(victim)]
                preemptions += 1
                pages.release(str(victim))
                waiting.appendleft(victim)
                if victim == name:
                    break
            if name in running:
                pages.grow(str(name))
                made[name] += 1
        moments.append(
            Moment(step=step, running=len(running), reserved=pages.reserved_slots, written=pages.written_slots)
        )
        for name in [name for name in running if made[name] == requests[name].answer]:
            pages.release(str(name))
            running.remove(name)
    return Stream(moments=tuple(moments), preemptions=preemptions, recomputed=recomputed)


def _fits(pages: BlockAllocator, tokens: int) -> bool:
    """Room for these tokens and the next one."""
    return (tokens + pages.block_tokens) // pages.block_tokens <= len(pages.free_blocks)
