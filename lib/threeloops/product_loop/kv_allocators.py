"""KV allocators: how many token slots a system sets aside for one request in one layer.

The information minimum is what attention still has to read; a real allocator holds more: half-empty blocks, a window
that starts in the middle of a block, a buffer sized for the longest answer, a tensor kept alive by a slice of it.
Each class below is one allocator, asked for slots of one layer at a time; `kv_cache` multiplies slots by bytes.

>>> for allocator in (
...     InformationMinimum(),
...     HfDynamic(),
...     HfStatic(max_tokens=4096),
...     VllmPaged(),
...     VllmAdmission(max_batched_tokens=2048),
...     LlamaCpp(),
...     WholeContext(),
... ):
...     print(allocator.name, allocator.slots(tokens=1000, window=None), allocator.slots(tokens=1000, window=128))
information-minimum 1000 128
hf-dynamic 1000 128
hf-static 4096 128
vllm-paged 1008 144
vllm-admission 1008 1024
llama.cpp 1024 768
whole-context 1000 1000
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from threeloops import checks


def _blocks(tokens: int, block_tokens: int) -> int:
    """Blocks that `tokens` consecutive tokens fill, the last one perhaps in part."""
    return -(-tokens // block_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocator:
    """What every allocator answers; `window=None` is a layer that reads the whole context."""

    name: ClassVar[str]

    def slots(self, *, tokens: int, window: int | None) -> int:
        """Token slots held in one layer by a request whose newest token is number `tokens`."""
        raise NotImplementedError

    def peak_slots(self, *, tokens: int, window: int | None) -> int:
        """The most slots that the request held in this layer on its way to `tokens`: what must fit."""
        return self.slots(tokens=tokens, window=window)

    @property
    def longest(self) -> int | None:
        """Tokens after which the allocator has no room at all; None where it grows on demand."""
        return None

    def shared_by(self, ranks: int) -> Self:
        """The allocator where that many ranks share the tokens of a cache (decode context parallelism): its slots are
        those of all of them.

        Raises: ValueError where the system has no such thing
        """
        if ranks == 1:
            return self
        raise ValueError(
            f"dcp={ranks}: in the system of {self.name} no ranks share a cache's tokens; vLLM's do, --allocator"
            " vllm-paged"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InformationMinimum(Allocator):
    """Only what the newest token reads: every token, or the last `window` of them, itself included. No allocator can
    hold less during a step.

    Source: Jiang et al., Mistral 7B, 2023, arXiv:2310.06825, section 2 (a rolling buffer of `window` entries)
    """

    name: ClassVar[str] = "information-minimum"

    def shared_by(self, ranks: int) -> Self:
        """The same tokens, on more ranks."""
        return self

    def slots(self, *, tokens: int, window: int | None) -> int:
        return tokens if window is None else min(tokens, window)


@dataclass(frozen=True, slots=True, kw_only=True)
class HfDynamic(Allocator):
    """transformers' DynamicCache: exact in full layers; in a windowed layer the slice it keeps holds on to the tensor
    it was cut from.

    A forward call of `call_tokens` tokens joins them to the window - 1 kept entries and keeps a slice of the last
    window - 1. The slice is a view, so the memory of the joined tensor stays in use until the next call: window slots
    while decoding, the whole prompt right after a long prefill.

    Assumes: the model's config was given to the cache (generate() and a bare forward do so); the copy while joining,
             one layer at a time, is not counted
    Source: transformers 5.23, cache_utils.py, DynamicLayer.update and DynamicSlidingWindowLayer.update
    """

    name: ClassVar[str] = "hf-dynamic"
    call_tokens: int = 1  # tokens in the latest forward call: 1 in decode, the prompt's length right after a prefill

    def __post_init__(self) -> None:
        checks.count(call_tokens=self.call_tokens)

    def slots(self, *, tokens: int, window: int | None) -> int:
        if window is None:
            return tokens
        if window == 1:
            raise ValueError(
                "window=1 must be at least 2 for hf-dynamic: its slice [-window + 1:] keeps every token at 1"
            )
        new = min(self.call_tokens, tokens)
        return min(tokens - new, window - 1) + new


@dataclass(frozen=True, slots=True, kw_only=True)
class HfStatic(Allocator):
    """transformers' StaticCache, and every scheme that reserves the longest answer in advance: one buffer of
    `max_tokens`, or of the window where that is less.

    Raises: ValueError if the request is longer than the buffer
    Source: transformers 5.23, cache_utils.py, StaticLayer and StaticSlidingWindowLayer
    """

    name: ClassVar[str] = "hf-static"
    max_tokens: int

    def __post_init__(self) -> None:
        checks.count(max_tokens=self.max_tokens)

    def slots(self, *, tokens: int, window: int | None) -> int:
        if tokens > self.max_tokens:
            raise ValueError(f"tokens={tokens} must not exceed max_tokens={self.max_tokens}; reserve at least {tokens}")
        return self.max_tokens if window is None else min(self.max_tokens, window)

    @property
    def longest(self) -> int | None:
        return self.max_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmPaged(Allocator):
    """vLLM's blocks in decode: whole blocks only, and a block is freed once none of its tokens can be read again.

    Formula:  blocks(tokens) - floor(max(0, tokens - window) / block_tokens), times block_tokens; never more than
              blocks(window + block_tokens - 1)
    Assumes:  one token per step, no shared prefix; vLLM's padding of unequal layer groups is not counted
    Source:   Kwon et al., 2023, arXiv:2309.06180, section 4.3; vLLM, v1/core/single_type_kv_cache_manager.py,
              SlidingWindowManager.remove_skipped_blocks, and block_size *= dcp_world_size
    """

    name: ClassVar[str] = "vllm-paged"
    block_tokens: int = 16  # vLLM's default
    # False (--disable-hybrid-kv-cache-manager): windowed layers keep every block, as full layers do
    hybrid_manager: bool = True

    def __post_init__(self) -> None:
        checks.count(block_tokens=self.block_tokens)

    def shared_by(self, ranks: int) -> Self:
        """A block of vLLM has its tokens on each of the ranks."""
        return replace(self, block_tokens=self.block_tokens * ranks)

    def slots(self, *, tokens: int, window: int | None) -> int:
        unreadable = 0 if window is None or not self.hybrid_manager else max(0, tokens - window)
        return (_blocks(tokens, self.block_tokens) - unreadable // self.block_tokens) * self.block_tokens

    def peak_slots(self, *, tokens: int, window: int | None) -> int:
        if window is None or not self.hybrid_manager:
            return self.slots(tokens=tokens, window=window)
        # The window lies worst when its oldest token is the last one of a block.
        return _blocks(min(tokens, window + self.block_tokens - 1), self.block_tokens) * self.block_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmAdmission(Allocator):
    """What vLLM sets against its pool for a request that may grow to `tokens`: its start-up check, and the "maximum
    concurrency" in its log (kv_budget).

    Formula:  blocks(tokens); in a windowed layer blocks(min(window - 1 + max_batched_tokens, tokens)) + 1, because
              the window may start inside a block
    Assumes:  as VllmPaged, and a prefill that may schedule `max_batched_tokens` in one step
    Source:   vLLM, v1/kv_cache_interface.py, FullAttentionSpec.max_memory_usage_bytes and
              SlidingWindowSpec.max_memory_usage_bytes
    """

    name: ClassVar[str] = "vllm-admission"
    max_batched_tokens: int
    block_tokens: int = 16  # vLLM's default

    def __post_init__(self) -> None:
        checks.count(block_tokens=self.block_tokens, max_batched_tokens=self.max_batched_tokens)

    def shared_by(self, ranks: int) -> Self:
        """A block of vLLM has its tokens on each of the ranks."""
        return replace(self, block_tokens=self.block_tokens * ranks)

    def slots(self, *, tokens: int, window: int | None) -> int:
        if window is None:
            return _blocks(tokens, self.block_tokens) * self.block_tokens
        return (_blocks(min(window - 1 + self.max_batched_tokens, tokens), self.block_tokens) + 1) * self.block_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaCpp(Allocator):
    """llama.cpp's cells: a context of `tokens`, filled up to 256; windowed layers have the window and one micro-batch,
    filled up as well.

    Formula:  pad(tokens); in a windowed layer pad(min(pad(tokens), window + ubatch_tokens)); pad to multiples of 256
    Assumes:  one sequence, and no --swa-full, with which every layer has the whole context (WholeContext)
    Source:   llama.cpp, src/llama-kv-cache-iswa.cpp (size_swa) and src/llama-context.cpp (n_ctx_seq)
    Measured: tests.product_loop.test_kv_cache.test_cells_that_llama_cpp_says_it_creates
    """

    name: ClassVar[str] = "llama.cpp"
    ubatch_tokens: int = 512  # llama.cpp's default of --ubatch-size

    def __post_init__(self) -> None:
        checks.count(ubatch_tokens=self.ubatch_tokens)

    def slots(self, *, tokens: int, window: int | None) -> int:
        cells = _blocks(tokens, _PADDED) * _PADDED
        return cells if window is None else _blocks(min(cells, window + self.ubatch_tokens), _PADDED) * _PADDED


_PADDED = 256  # cells of llama.cpp come in multiples of this


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeContext(Allocator):
    """Every layer keeps every token, whatever its window: ik_llama.cpp, and llama.cpp with --swa-full.

    Source: llama.cpp, src/llama-kv-cache-iswa.cpp (swa_full: size_swa = size_base)
    """

    name: ClassVar[str] = "whole-context"

    def slots(self, *, tokens: int, window: int | None) -> int:
        return tokens


ALLOCATORS: dict[str, type[Allocator]] = {
    kind.name: kind
    for kind in (InformationMinimum, HfDynamic, HfStatic, VllmPaged, VllmAdmission, LlamaCpp, WholeContext)
}


def by_name(name: str, **options: int) -> Allocator:
    """The allocator of that name, with its options.

    >>> by_name("vllm-paged", block_tokens=32)
    VllmPaged(block_tokens=32, hybrid_manager=True)
    """
    checks.one_of(ALLOCATORS, allocator=name)
    return ALLOCATORS[name](**options)
