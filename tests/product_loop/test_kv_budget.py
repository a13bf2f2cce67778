"""KV budget: published logs of vLLM, and a page allocator that hands out blocks until none is left."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threeloops.models.architecture import Attention, DenseMlp, Layer, Model
from threeloops.models.catalogue import model
from threeloops.product_loop import kv_budget, kv_capacity
from threeloops.product_loop.kv_allocators import VllmAdmission
from threeloops.simulate.product_loop.block_allocator import BlockAllocator
from threeloops.units import GiB, MiB

LLAMA_3_8B = model("llama-3-8b")


def small(*windows: int | None) -> Model:
    layers = [
        (
            Layer(
                attention=Attention(num_heads=2, num_kv_heads=1, head_dim=4, window=window),
                mlp=DenseMlp(intermediate=8, gated=False, activation="relu"),
                norm="rmsnorm",
                num_norms=2,
            ),
            1,
        )
        for window in windows
    ]
    return Model(name="small", hidden=8, vocab=16, groups=tuple(layers), tied_head=True, max_context=4096)


# ---- published logs ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("memory", "share", "weights", "peak", "outside", "graphs", "printed", "rounding"),
    [
        # vllm-project/vllm issue 10517, Llama 3.1 8B on an RTX 3090: total_gpu_memory=23.58GiB
        # peak_torch_memory=17.06GiB (weights 14.9888 in it) non_torch_memory=0.35GiB kv_cache_size=3.81GiB
        # gpu_memory_utilization=0.90; the next run has 17.98 and 2.89
        (23.58, 0.90, 14.9888, 17.06 - 14.9888, 0.35, 0, 3.81, 0.02),
        (23.58, 0.90, 14.9888, 17.98 - 14.9888, 0.35, 0, 2.89, 0.02),
        # pull request 14447: model weights take 21.21GiB; non_torch_memory takes 0.20GiB; PyTorch activation peak
        # memory takes 0.37GiB; the rest of the memory reserved for KV Cache is 1.57GiB, with 23.58GiB x 0.99
        (23.58, 0.99, 21.21, 0.37, 0.20, 0, 1.57, 0.02),
        # pull request 21489, gemma-3-4b on a B200: (0.9, 160.53 GiB), 8.58 GiB for weight, 9.96 GiB for peak
        # activation, 0.07 GiB for non-torch memory, 0.65 GiB for CUDAGraph memory: --kv-cache-memory=151519866880 to
        # fit, which keeps another 150 MiB back
        (178.36, 0.90, 8.58, 9.96, 0.07, 0.65, (151_519_866_880 + 150 * MiB) / GiB, 0.03),
    ],
)
def test_what_is_left_in_a_log(memory, share, weights, peak, outside, graphs, printed, rounding) -> None:
    left = kv_budget.budget_bytes(
        memory_bytes=memory * GiB,
        memory_utilisation=share,
        weights_bytes=weights * GiB,
        activation_peak_bytes=peak * GiB,
        outside_bytes=outside * GiB,
        graph_bytes=graphs * GiB,
    )
    assert left / GiB == pytest.approx(printed, abs=rounding)  # every term is printed to a hundredth


@pytest.mark.parametrize(("blocks", "tokens", "printed"), [(1952, 20_000, "1.56"), (1478, 29_000, "0.82")])
def test_concurrency_line_of_a_log(blocks: int, tokens: int, printed: str) -> None:
    # The same issue 10517: "GPU blocks: 1952", "Maximum concurrency for 20000 tokens per request: 1.56x"; 1478
    # blocks, 29000 tokens: 0.82x. A block is 16 tokens * 128 KiB = 2 MiB; a block less one byte more is not a block.
    size = {"bytes_per_element": 2}
    for free_bytes in (blocks * 2 * MiB, (blocks + 1) * 2 * MiB - 1):
        assert kv_budget.num_blocks(LLAMA_3_8B, free_bytes=free_bytes, block_tokens=16, **size) == blocks
        admission = VllmAdmission(max_batched_tokens=tokens)
        told = kv_budget.max_concurrency(LLAMA_3_8B, tokens=tokens, free_bytes=free_bytes, admission=admission, **size)
        assert f"{told:.2f}" == printed


def test_memory_for_part_of_a_block_raises_no_concurrency() -> None:
    size = {"tokens": 100, "bytes_per_element": 2, "admission": VllmAdmission(max_batched_tokens=100)}
    whole, almost, more = (
        kv_budget.max_concurrency(LLAMA_3_8B, free_bytes=free_bytes, **size)
        for free_bytes in (10 * MiB, 12 * MiB - 1, 12 * MiB)
    )
    assert (whole, almost, more) == (5 / 7, 5 / 7, 6 / 7)  # 100 tokens are seven blocks of 16


def test_cache_size_line_of_a_log() -> None:
    # vllm-project/vllm pull request 13596: 127626 blocks are "GPU KV cache size: 2,042,016 tokens", and 997.08x of
    # 2,048 tokens.
    free_bytes = 127_626 * 2 * MiB
    slots = kv_capacity.token_slots(LLAMA_3_8B, free_bytes=free_bytes, bytes_per_element=2)
    assert slots == 2_042_016
    admission = VllmAdmission(max_batched_tokens=2048)
    told = kv_budget.max_concurrency(
        LLAMA_3_8B, tokens=2048, free_bytes=free_bytes, bytes_per_element=2, admission=admission
    )
    assert f"{told:.2f}" == "997.08"


# ---- a page allocator --------------------------------------------------------------------------


def grown(pages: BlockAllocator, request: str, most: int) -> int:
    """Tokens that a request reaches before the free list is empty."""
    for reached in range(most):
        try:
            pages.grow(request)
        except ValueError:
            return reached
    return most


@settings(max_examples=40, deadline=None)
@given(
    blocks=st.integers(0, 12),
    over=st.integers(0, 99),
    block_tokens=st.integers(1, 5),
    tokens=st.integers(1, 17),
    layers=st.integers(1, 3),
)
def test_blocks_slots_and_concurrency_against_pages(
    blocks: int, over: int, block_tokens: int, tokens: int, layers: int
) -> None:
    """One pool whose blocks hold their tokens in all layers: a lone request fills it, and equal requests fill it one
    after the other.
    """
    net = small(*[None] * layers)
    block_bytes = block_tokens * layers * 2 * 4 * 2  # keys and values, four wide, two bytes
    free_bytes = blocks * block_bytes + over / 100 * block_bytes
    found = kv_budget.num_blocks(net, free_bytes=free_bytes, block_tokens=block_tokens, bytes_per_element=2)
    if blocks:
        assert (
            grown(BlockAllocator(num_blocks=blocks, block_tokens=block_tokens), "alone", most=100)
            == found * block_tokens
        )
        pages, fit = BlockAllocator(num_blocks=blocks, block_tokens=block_tokens), 0
        while grown(pages, str(fit), most=tokens) == tokens:
            fit += 1
        admission = VllmAdmission(max_batched_tokens=tokens, block_tokens=block_tokens)
        assert (
            int(
                kv_budget.max_concurrency(
                    net, tokens=tokens, free_bytes=free_bytes, bytes_per_element=2, admission=admission
                )
                + 1e-9
            )
            == fit
        )
    assert found == blocks


@given(free_bytes=st.integers(0, 5000), tp=st.sampled_from((1, 2)))
def test_slots_are_the_batch_of_single_tokens(free_bytes: int, tp: int) -> None:
    net = small(None, None)
    slots = kv_capacity.token_slots(net, free_bytes=free_bytes, bytes_per_element=1, tp=tp)
    assert slots == kv_capacity.max_concurrent_requests(
        net, tokens=1, free_bytes=free_bytes, bytes_per_element=1, tp=tp
    )


def test_windows_raise_concurrency_and_not_slots() -> None:
    full, windowed = small(None, None), small(None, 16)
    room, admission = {"free_bytes": 10**6, "bytes_per_element": 2}, VllmAdmission(max_batched_tokens=16)
    assert kv_capacity.token_slots(full, **room) == kv_capacity.token_slots(windowed, **room)
    concurrency = [kv_budget.max_concurrency(net, tokens=1600, admission=admission, **room) for net in (full, windowed)]
    # 1,600 slots in each of two layers, against 1,600 and 48: three blocks of 16 for a window of 16 that prefills 16
    # at once
    assert concurrency[1] / concurrency[0] == pytest.approx(2 * 1600 / (1600 + 48))


def dealt(kinds: dict[int | None, int], group: int) -> list[tuple[int | None, int]]:
    """Groups as vLLM makes them, each with its window and the layers in it: one after another, in turn."""
    found = []
    for window, layers in kinds.items():
        places = list(range(layers))
        groups = -(-layers // group)
        found += [(window, len(places[first::groups])) for first in range(groups)]
    return found


@pytest.mark.parametrize(("name", "full", "windowed"), [("gemma-3-27b", 10, 52), ("gpt-oss-120b", 18, 18)])
def test_unequal_kinds_of_layers_are_padded(name: str, full: int, windowed: int) -> None:
    """Block by block: a request takes from the pool for every group, and no group is larger than the pool's blocks."""
    net = model(name)
    window = next(layer.attention.window for layer, _ in net.groups if layer.attention.window)
    groups = dealt({None: full, window: windowed}, kv_budget.group_layers([full, windowed]))
    assert max(layers for _, layers in groups) == kv_budget.group_layers([full, windowed])
    attention = net.groups[0][0].attention
    page = 16 * 2 * attention.num_kv_heads * attention.head_dim * 2 * kv_budget.group_layers([full, windowed])
    for tokens, budget in ((4096, 8192), (32_768, 2048)):
        blocks = sum(
            -(-(tokens if wide is None else min(tokens, wide - 1 + budget)) // 16) + (wide is not None)
            for wide, _ in groups
        )
        admission = VllmAdmission(max_batched_tokens=budget)
        told = kv_budget.max_concurrency(net, tokens=tokens, free_bytes=20e9, bytes_per_element=2, admission=admission)
        assert told == pytest.approx((20e9 // page) / blocks)


# ---- identities and refusals -------------------------------------------------------------------

TERMS = ("weights_bytes", "activation_peak_bytes", "outside_bytes", "graph_bytes")
CARD = {
    "memory_bytes": 1000,
    "memory_utilisation": 0.9,
    "weights_bytes": 400,
    "activation_peak_bytes": 100,
    "outside_bytes": 50,
    "graph_bytes": 25,
}


@pytest.mark.parametrize("term", TERMS)
def test_a_byte_more_of_anything_resident_is_a_byte_less_of_cache(term: str) -> None:
    assert kv_budget.budget_bytes(**CARD | {term: CARD[term] + 1}) == kv_budget.budget_bytes(**CARD) - 1


def test_budget_scales_and_an_empty_card_gives_its_share() -> None:
    doubled = {name: 2 * value if name.endswith("_bytes") else value for name, value in CARD.items()}
    assert kv_budget.budget_bytes(**doubled) == 2 * kv_budget.budget_bytes(**CARD)
    assert kv_budget.budget_bytes(**CARD | dict.fromkeys(TERMS, 0) | {"memory_utilisation": 1}) == 1000


def test_refusals() -> None:
    assert kv_budget.budget_bytes(**CARD | {"memory_utilisation": 0.576}) == pytest.approx(1)
    with pytest.raises(
        ValueError,
        match="memory_utilisation=0.575 leaves nothing for the KV cache beside 575 resident bytes; try more than 0.575",
    ):
        kv_budget.budget_bytes(**CARD | {"memory_utilisation": 0.575})
    with pytest.raises(ValueError, match="try a larger memory"):
        kv_budget.budget_bytes(**CARD | {"weights_bytes": 1000})
    with pytest.raises(ValueError, match="memory_utilisation=90 must lie between 0 and 1"):
        kv_budget.budget_bytes(**CARD | {"memory_utilisation": 90})
    assert kv_budget.num_blocks(LLAMA_3_8B, free_bytes=0, block_tokens=16, bytes_per_element=2) == 0
    with pytest.raises(ValueError, match="block_tokens=0 must be a whole number of at least 1"):
        kv_budget.num_blocks(LLAMA_3_8B, free_bytes=0, block_tokens=0, bytes_per_element=2)
    assert kv_capacity.token_slots(LLAMA_3_8B, free_bytes=0, bytes_per_element=2) == 0
    with pytest.raises(ValueError, match="free_bytes=-1 must be at least 0"):
        kv_capacity.token_slots(LLAMA_3_8B, free_bytes=-1, bytes_per_element=2)
    with pytest.raises(ValueError, match="tokens=0"):
        kv_budget.max_concurrency(
            LLAMA_3_8B, tokens=0, free_bytes=1, bytes_per_element=2, admission=VllmAdmission(max_batched_tokens=1)
        )
    with pytest.raises(ValueError, match=r"layers=\[\] has no kind of layer"):
        kv_budget.group_layers([])
