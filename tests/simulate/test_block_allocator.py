"""The paged allocator by itself (no slot lost or owned twice), and then as the count that the formulas must meet."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threeloops.models.architecture import Attention
from threeloops.product_loop.kv_allocators import VllmAdmission, VllmPaged
from threeloops.simulate.product_loop.block_allocator import BlockAllocator, requests_that_fit
from threeloops.simulate.product_loop.cache_walk import heads_read

windows = st.none() | st.integers(1, 20)


@settings(max_examples=100, deadline=None)
@given(
    block_tokens=st.integers(1, 7),
    window=windows,
    steps=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=30),
)
def test_every_block_has_one_owner(block_tokens: int, window: int | None, steps: list[tuple[str, int]]) -> None:
    pages = BlockAllocator(num_blocks=400, block_tokens=block_tokens, window=window)
    for request, tokens in steps:
        if tokens:
            pages.grow(request, tokens=tokens)
        elif request in pages.tables:
            pages.release(request)
        owned = [block for name in pages.tables for block in pages.table(name) if block is not None]
        assert sorted(owned + pages.free_blocks) == list(range(400))
        assert sorted(pages.written) == sorted(owned)
        assert pages.readable_slots <= pages.written_slots <= pages.reserved_slots
        # Nothing that the newest token reads was given back.
        assert pages.readable_slots == sum(
            length if window is None else min(length, window) for length in pages.lengths.values()
        )


def test_released_blocks_serve_the_next_request() -> None:
    pages = BlockAllocator(num_blocks=3, block_tokens=4)
    pages.grow("a", tokens=8)
    pages.grow("b", tokens=3)
    with pytest.raises(ValueError, match="no free block is left of 3"):
        pages.grow("a")
    pages.grow("b")  # its last slot is still free
    pages.release("b")
    pages.grow("a")
    assert (pages.table("a"), pages.reserved_slots, pages.written_slots) == ([0, 1, 2], 12, 9)


@settings(max_examples=150, deadline=None)
@given(tokens=st.integers(1, 90), block_tokens=st.integers(1, 17), window=windows)
def test_decode_holds_what_the_formula_says_at_every_length(tokens: int, block_tokens: int, window: int | None) -> None:
    pages, formula = (
        BlockAllocator(num_blocks=200, block_tokens=block_tokens, window=window),
        VllmPaged(block_tokens=block_tokens),
    )
    most = 0
    for length in range(1, tokens + 1):
        pages.grow("a")
        assert pages.reserved_slots == formula.slots(tokens=length, window=window)
        most = max(most, pages.reserved_slots)
        assert most == formula.peak_slots(tokens=length, window=window)


@settings(max_examples=150, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=6),
    block_tokens=st.integers(1, 17),
)
def test_many_requests_hold_the_sum(lengths: list[int], block_tokens: int) -> None:
    pages, formula = BlockAllocator(num_blocks=400, block_tokens=block_tokens), VllmPaged(block_tokens=block_tokens)
    for index, length in enumerate(lengths):
        pages.grow(str(index), tokens=length)
    assert pages.reserved_slots == sum(formula.slots(tokens=length, window=None) for length in lengths)
    # A request wastes less than one block: Kwon et al., 2023, arXiv:2309.06180, section 4.3.
    assert pages.reserved_slots - pages.written_slots <= len(lengths) * (block_tokens - 1)


@settings(max_examples=200, deadline=None)
@given(
    steps=st.lists(st.integers(1, 9), min_size=1, max_size=25),
    block_tokens=st.integers(1, 9),
    window=windows,
)
def test_admission_covers_every_schedule(steps: list[int], block_tokens: int, window: int | None) -> None:
    # Chunks of at most 9 tokens, in whatever order: the request never holds more than vLLM set aside for it when it
    # was admitted.
    pages, formula = (
        BlockAllocator(num_blocks=300, block_tokens=block_tokens, window=window),
        VllmAdmission(block_tokens=block_tokens, max_batched_tokens=9),
    )
    set_aside = formula.slots(tokens=sum(steps), window=window)
    for step in steps:
        pages.grow("a", tokens=step)
        assert pages.reserved_slots <= set_aside


def test_admission_is_reached_when_the_window_starts_at_the_end_of_a_block() -> None:
    # The example in vLLM's source: blocks of 4, the window's last 3 tokens and 3 new ones may need [XXCD] [EF..] or
    # one block more.
    formula = VllmAdmission(block_tokens=4, max_batched_tokens=3)
    most = 0
    pages = BlockAllocator(num_blocks=50, block_tokens=4, window=4)
    for _ in range(8):
        pages.grow("a", tokens=3)
        most = max(most, pages.reserved_slots)
    assert most == formula.slots(tokens=24, window=4) == 12


def test_admission_by_hand() -> None:
    # vLLM's SlidingWindowSpec: window - 1 computed tokens and the scheduled ones, in blocks, and one block more. 9 +
    # 8 tokens are 5 blocks of 4, so 6; one token fewer fits 4 blocks, so 5. A request of 7 tokens in all needs 2 + 1.
    assert VllmAdmission(block_tokens=4, max_batched_tokens=8).slots(tokens=100, window=10) == 6 * 4
    assert VllmAdmission(block_tokens=4, max_batched_tokens=8).slots(tokens=100, window=9) == 5 * 4
    assert VllmAdmission(block_tokens=4, max_batched_tokens=8).slots(tokens=7, window=10) == 3 * 4
    assert VllmAdmission(block_tokens=4, max_batched_tokens=8).slots(tokens=7, window=None) == 2 * 4


def test_mean_waste_of_even_lengths_is_half_a_block() -> None:
    # Lengths 1 to 160 once each in blocks of 16 leave 15, 14, ... 0 slots empty, ten times over: 7.5 on average.
    pages = BlockAllocator(num_blocks=2000, block_tokens=16)
    for length in range(1, 161):
        pages.grow(str(length), tokens=length)
    assert (pages.reserved_slots - pages.written_slots) / 160 == (16 - 1) / 2


def test_requests_that_fit_by_hand() -> None:
    # One full layer of 10 bytes a slot, blocks of 4: a request of 5 tokens holds 2 blocks, 80 bytes.
    assert requests_that_fit(layers=[(None, 10.0)], block_tokens=4, tokens=5, budget_bytes=239) == 2
    assert requests_that_fit(layers=[(None, 10.0)], block_tokens=4, tokens=5, budget_bytes=240) == 3
    assert requests_that_fit(layers=[(None, 10.0)], block_tokens=4, tokens=5, budget_bytes=79) == 0


def test_refusals() -> None:
    for broken, message in (
        ({"num_blocks": 0}, "num_blocks=0"),
        ({"block_tokens": 0}, "block_tokens=0"),
        ({"window": 0}, "window=0"),
    ):
        with pytest.raises(ValueError, match=f"{message} must be a whole number of at least 1"):
            BlockAllocator(**({"num_blocks": 1, "block_tokens": 1} | broken))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="tokens=0 must be a whole number of at least 1"):
        BlockAllocator(num_blocks=1, block_tokens=1).grow("a", tokens=0)
    with pytest.raises(ValueError, match="tp=5 leaves 2 of num_heads=12 query heads without a rank"):
        heads_read(Attention(num_heads=12, num_kv_heads=4, head_dim=2), tp=5, rank=0)
