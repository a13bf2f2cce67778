"""How a server chooses what its next step computes: the named policies, and the pool of KV blocks it must live in.

>>> chunked_prefill(slots=32, token_budget=512).order
'decode first'
>>> chunked_prefill(slots=512, token_budget=512)
Traceback (most recent call last):
    ...
ValueError: token_budget=512 must be more than slots=512: with every slot decoding, no token would be left for a prompt
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from threeloops import checks

ORDERS = ("decode first", "prefill first")
PREEMPTIONS = ("recompute", "swap")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Rules of one server. Between two steps it may change who is in a slot; during a step it may not.

    slots          requests that may run at once: vLLM's max_num_seqs
    order          decode first: every step decodes whoever runs, and computes prompt tokens besides. prefill first:
                   as long as an admitted prompt is unread, steps read prompts and nobody decodes
    static         a batch is admitted only when the one before it has ended as a whole
    token_budget   tokens of one step, decodes included: vLLM's max_num_batched_tokens. Prompts are read in chunks that
                   fit. None: prompts are read whole
    long_prefill_token_threshold
                   of one prompt, a step with a token_budget reads so many tokens at most (vLLM's name). None: what the
                   budget leaves
    max_prefill_tokens
                   of whole prompts, a step reads so many tokens at most; a longer prompt is read alone (SGLang's
                   --max-prefill-tokens). None: all that are admitted
    by_priority    whoever has the larger priority is admitted first; within one priority, first come first served
    shed_at        an arrival that would find so many waiting before it is turned away. None: everybody waits

    Not modelled: the host's time between steps, drafts (a decode makes one token), adapters, encoders, requests that
    are cancelled; admission by how far those who run will grow (SGLang's --schedule-conservativeness, TensorRT-LLM's
    reservation to the end); a queue sorted by prefix
    Source:   vLLM, v1/core/sched/scheduler.py and v1/core/kv_cache_manager.py, 2026; SGLang documentation, "Server
              Arguments", 2026
    """

    name: str
    slots: int
    order: str = "decode first"
    static: bool = False
    token_budget: int | None = None
    long_prefill_token_threshold: int | None = None
    max_prefill_tokens: int | None = None
    by_priority: bool = False
    shed_at: int | None = None

    def __post_init__(self) -> None:
        checks.count(slots=self.slots)
        checks.one_of(ORDERS, order=self.order)
        if self.shed_at is not None:
            checks.count(at_least=0, shed_at=self.shed_at)
        if self.max_prefill_tokens is not None:
            checks.count(max_prefill_tokens=self.max_prefill_tokens)
        if self.long_prefill_token_threshold is not None:
            checks.count(long_prefill_token_threshold=self.long_prefill_token_threshold)
        if self.token_budget is None:
            if self.long_prefill_token_threshold is not None:
                raise ValueError("long_prefill_token_threshold is for chunks of prompts; give a token_budget, too")
            return
        checks.count(token_budget=self.token_budget)
        if self.max_prefill_tokens is not None:
            raise ValueError(
                "token_budget cuts prompts into chunks; max_prefill_tokens is for whole ones, leave one out"
            )
        if self.static:
            raise ValueError("static=True reads its prompts whole; leave token_budget out")
        if self.order == "decode first" and self.token_budget <= self.slots:
            raise ValueError(
                f"token_budget={self.token_budget} must be more than slots={self.slots}: with every slot decoding, no"
                " token would be left for a prompt"
            )

    def prompts_in_a_step(self, lengths: Sequence[int]) -> int:
        """How many of these whole prompts one step reads, first admitted first."""
        if self.max_prefill_tokens is None:
            return len(lengths)
        return max(1, sum(so_far <= self.max_prefill_tokens for so_far in accumulate(lengths)))


def static_batching(*, slots: int) -> Policy:
    """A batch of whoever waits, up to the slots; nobody joins or leaves a slot until its longest answer has ended."""
    return Policy(name="static", slots=slots, static=True)


def continuous_batching(*, slots: int, order: str = "prefill first", max_prefill_tokens: int | None = None) -> Policy:
    """A request takes a free slot at any step and leaves it after its last token; prompts are read whole."""
    return Policy(name=f"continuous, {order}", slots=slots, order=order, max_prefill_tokens=max_prefill_tokens)


def chunked_prefill(*, slots: int, token_budget: int) -> Policy:
    """Continuous, and every step decodes whoever runs and spends what is left of the budget on prompts."""
    return Policy(name=f"chunked, {token_budget} tokens a step", slots=slots, token_budget=token_budget)


@dataclass(frozen=True, slots=True, kw_only=True)
class KVBlocks:
    """A pool of equal KV blocks. When it runs out, the request of the lowest priority that was admitted last gives up
    its blocks: it comes back by computing them again, or they are swapped out and in at so many seconds a block.

    watermark: a share of the blocks that must stay free when a request is admitted beside others, so that those who run
    can grow before somebody must go (vLLM's name; 0 unless told otherwise)
    Not modelled: several kinds of blocks in one pool, tiers beside it, copies of blocks
    """

    num_blocks: int
    block_tokens: int = 16
    preemption: str = "recompute"
    swap_s_per_block: float = 0.0
    prefix_cache: bool = False
    watermark: float = 0.0

    def __post_init__(self) -> None:
        checks.fraction(watermark=self.watermark)
        checks.count(num_blocks=self.num_blocks, block_tokens=self.block_tokens)
        checks.one_of(PREEMPTIONS, preemption=self.preemption)
        checks.non_negative(swap_s_per_block=self.swap_s_per_block)
