"""How a server chooses what its next step computes: the named policies, and the pool of KV blocks it must live in.

>>> chunked_prefill(slots=32, token_budget=512).order
'decode first'
>>> chunked_prefill(slots=512, token_budget=512)
Traceback (most recent call last):
    ...
ValueError: token_budget=512 must be more than slots=512: with every slot decoding, no token would be left for a prompt
"""

from dataclasses import dataclass

from threeloops import checks

ORDERS = ("decode first", "prefill first")
PREEMPTIONS = ("recompute", "swap")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Rules of one server. Between two steps it may change who is in a slot; during a step it may not.

    order          decode first: every step decodes whoever runs, and computes prompt tokens besides. prefill first:
                   as long as an admitted prompt is unread, steps read prompts and nobody decodes
    static         a batch is admitted only when the one before it has ended as a whole
    token_budget   tokens of one step, decodes included; prompts are read in chunks that fit. None: prompts are read
                   whole
    by_priority    whoever has the larger priority is admitted first; within one priority, first come first served
    shed_at        an arrival that would find so many waiting before it is turned away. None: everybody waits
    """

    name: str
    slots: int
    order: str = "decode first"
    static: bool = False
    token_budget: int | None = None
    by_priority: bool = False
    shed_at: int | None = None

    def __post_init__(self) -> None:
        checks.count(slots=self.slots)
        checks.one_of(ORDERS, order=self.order)
        if self.shed_at is not None:
            checks.count(at_least=0, shed_at=self.shed_at)
        if self.token_budget is None:
            return
        checks.count(token_budget=self.token_budget)
        if self.static:
            raise ValueError("static=True reads its prompts whole; leave token_budget out")
        if self.order == "decode first" and self.token_budget <= self.slots:
            raise ValueError(
                f"token_budget={self.token_budget} must be more than slots={self.slots}: with every slot decoding, no"
                " token would be left for a prompt"
            )


def static_batching(*, slots: int) -> Policy:
    """A batch of whoever waits, up to the slots; nobody joins or leaves a slot until its longest answer has ended."""
    return Policy(name="static", slots=slots, static=True)


def continuous_batching(*, slots: int, order: str = "prefill first") -> Policy:
    """A request takes a free slot at any step and leaves it after its last token; prompts are read whole."""
    return Policy(name=f"continuous, {order}", slots=slots, order=order)


def chunked_prefill(*, slots: int, token_budget: int) -> Policy:
    """Continuous, and every step decodes whoever runs and spends what is left of the budget on prompts."""
    return Policy(name=f"chunked, {token_budget} tokens a step", slots=slots, token_budget=token_budget)


@dataclass(frozen=True, slots=True, kw_only=True)
class KVBlocks:
    """A pool of equal KV blocks. When it runs out, the request of the lowest priority that was admitted last gives up
    its blocks: it comes back by computing them again, or they are swapped out and in at so many seconds a block.
    """

    num_blocks: int
    block_tokens: int = 16
    preemption: str = "recompute"
    swap_s_per_block: float = 0.0
    prefix_cache: bool = False

    def __post_init__(self) -> None:
        checks.count(num_blocks=self.num_blocks, block_tokens=self.block_tokens)
        checks.one_of(PREEMPTIONS, preemption=self.preemption)
        checks.non_negative(swap_s_per_block=self.swap_s_per_block)
