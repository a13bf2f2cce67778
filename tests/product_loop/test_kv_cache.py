"""KV-cache sizing is the field's most repeated bug: published figures, two independent counts, and every refusal
beside its nearest valid neighbour.
"""

import pytest
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from hypothesis import given, settings
from hypothesis import strategies as st

from threeloops import dtypes
from threeloops.models import catalogue
from threeloops.models.architecture import Attention, DenseMlp, LatentAttention, Layer, Model
from threeloops.product_loop import kv_cache, kv_capacity
from threeloops.product_loop.caches import kv_heads
from threeloops.product_loop.kv_allocators import (
    Allocator,
    HfDynamic,
    HfStatic,
    InformationMinimum,
    LlamaCpp,
    VllmAdmission,
    VllmPaged,
    WholeContext,
    by_name,
)
from threeloops.product_loop.kv_quantisation import FP8_LATENT, NVFP4, PER_TOKEN_HEAD, Quantisation, cache_format
from threeloops.simulate.product_loop import block_allocator, cache_walk
from threeloops.units import GiB, KiB, kB

MLP = DenseMlp(intermediate=64, gated=True, activation="silu")


def model_of(*attentions: tuple[Attention | LatentAttention, int], max_context: int = 131_072) -> Model:
    groups = tuple(
        (Layer(attention=attention, mlp=MLP, norm="rmsnorm", num_norms=2), num_layers)
        for attention, num_layers in attentions
    )
    return Model(name="test", hidden=64, vocab=100, groups=groups, tied_head=False, max_context=max_context)


def heads(
    num_heads: int, num_kv_heads: int, head_dim: int, *, window: int | None = None, owns_cache: bool = True
) -> Attention:
    return Attention(
        num_heads=num_heads, num_kv_heads=num_kv_heads, head_dim=head_dim, window=window, owns_cache=owns_cache
    )


def latent(num_heads: int = 128) -> LatentAttention:
    return LatentAttention(
        num_heads=num_heads, q_rank=1536, kv_rank=512, nope_head_dim=128, rope_head_dim=64, value_head_dim=128
    )


OPT_13B = model_of((heads(40, 40, 128), 40), max_context=2048)
GPT_3_175B = model_of((heads(96, 96, 128), 96), max_context=2048)
LLAMA_3_8B = model_of((heads(32, 8, 128), 32))
LLAMA_3_70B = model_of((heads(64, 8, 128), 80))
LLAMA_3_405B = model_of((heads(128, 8, 128), 126))
QWEN_25_7B = model_of((heads(28, 4, 128), 28), max_context=32_768)
QWEN_25_72B = model_of((heads(64, 8, 128), 80))
QWEN_3_235B = model_of((heads(64, 4, 128), 94))
FALCON_7B = model_of((heads(71, 1, 64), 32), max_context=2048)
GEMMA_2_9B = model_of((heads(16, 8, 256, window=4096), 21), (heads(16, 8, 256), 21))
GEMMA_3_27B = model_of((heads(32, 16, 128, window=1024), 52), (heads(32, 16, 128), 10))
GPT_OSS_20B = model_of((heads(64, 8, 64, window=128), 12), (heads(64, 8, 64), 12))
MISTRAL_7B = model_of((heads(32, 8, 128, window=4096), 32))
DEEPSEEK_V2 = model_of((latent(), 60))
DEEPSEEK_V3 = model_of((latent(), 61))
ZOO = [OPT_13B, LLAMA_3_8B, QWEN_25_7B, FALCON_7B, GEMMA_2_9B, GEMMA_3_27B, GPT_OSS_20B, DEEPSEEK_V3]


# Published figures


@pytest.mark.parametrize(
    ("model", "published_kb"),
    [(DEEPSEEK_V3, "70.272"), (QWEN_25_72B, "327.680"), (LLAMA_3_405B, "516.096")],
    ids=["DeepSeek-V3 MLA", "Qwen-2.5 72B GQA", "Llama-3.1 405B GQA"],
)
def test_bytes_per_token_of_deepseeks_comparison(model: Model, published_kb: str) -> None:
    # DeepSeek-AI, "Insights into DeepSeek-V3", 2025, arXiv:2505.09343, table 1: BF16, KB is 1,000 bytes.
    assert f"{kv_cache.bytes_per_token(model, bytes_per_element=2) / kB:.3f}" == published_kb


def test_elements_per_token_of_deepseek_v2() -> None:
    # DeepSeek-AI, DeepSeek-V2, 2024, arXiv:2405.04434, appendix D.2: 34.6K elements per token for the large MLA model
    # (60 layers of 512 + 64).
    assert f"{kv_cache.bytes_per_token(DEEPSEEK_V2, bytes_per_element=1) / 1000:.1f}K" == "34.6K"


def test_bytes_per_token_and_request_of_the_paged_attention_paper() -> None:
    # Kwon et al., 2023, arXiv:2309.06180, section 3: 2 x 5120 x 40 x 2 = 800 KB per token of OPT-13B, and up to 1.6
    # GB at 2,048 tokens (KB and GB binary).
    assert kv_cache.bytes_per_token(OPT_13B, bytes_per_element=2) == 800 * KiB
    assert f"{kv_cache.request_bytes(OPT_13B, tokens=2048, bytes_per_element=2) / GiB:.1f}" == "1.6"


@pytest.mark.parametrize(("model", "memory_gib", "published"), [(OPT_13B, 12, "15.7K"), (GPT_3_175B, 264, "60.1K")])
def test_slots_of_the_paged_attention_paper(model: Model, memory_gib: int, published: str) -> None:
    # The same paper, table 1: 12 GB hold 15.7K slots of the 13B model, 264 GB hold 60.1K of the 175B one. Both come
    # out with GB = 2^30 only.
    slots = kv_capacity.token_slots(model, free_bytes=memory_gib * GiB, bytes_per_element=2)
    assert f"{slots / 1000:.1f}K" == published


@pytest.mark.parametrize(("memory", "blocks"), [("3.81", 1952), ("2.89", 1478)])
def test_blocks_in_a_vllm_log(memory: str, blocks: int) -> None:
    # Log in vllm-project/vllm issue 10517, Llama-3.1-8B on a 24 GB card: kv_cache_size=3.81GiB, GPU blocks: 1952;
    # kv_cache_size=2.89GiB, GPU blocks: 1478. A block holds 16 tokens; what is left over of the memory is less than
    # one block of 2 MiB, too little to change the second decimal.
    block = kv_cache.held_bytes(LLAMA_3_8B, tokens=16, bytes_per_element=2, allocator=VllmPaged())
    assert f"{blocks * block / GiB:.2f}" == memory


def test_longest_context_in_a_vllm_log() -> None:
    # Same issue: with 1478 blocks vLLM refuses a maximum length of 29,000, as at most 23,648 tokens can be stored.
    free_bytes = 1478 * kv_cache.held_bytes(LLAMA_3_8B, tokens=16, bytes_per_element=2, allocator=VllmPaged())
    assert (
        kv_capacity.longest_context(
            LLAMA_3_8B, batch=1, free_bytes=free_bytes, bytes_per_element=2, allocator=VllmPaged()
        )
        == 23_648
    )
    # "Maximum concurrency for 29000 tokens per request: 0.82x"
    request = kv_cache.held_bytes(
        LLAMA_3_8B, tokens=29_000, bytes_per_element=2, allocator=VllmAdmission(max_batched_tokens=29_000)
    )
    assert f"{free_bytes / request:.2f}" == "0.82"


def test_bytes_per_rank_in_an_sglang_log() -> None:
    # Log in vllm-project/vllm issue 21348, Qwen3-235B-A22B with tp=4: "#tokens: 367404, K size: 8.23 GB, V size: 8.23
    # GB" on each rank (GB binary).
    on_rank = kv_cache.per_rank(QWEN_3_235B, tokens=367_404, batch=1, tp=4, bytes_per_element=2).rank_bytes
    assert f"{on_rank / 2 / GiB:.2f}" == "8.23"


def test_latent_cache_of_656_bytes() -> None:
    # vLLM, v1/kv_cache_interface.py, MLAAttentionSpec with fp8_ds_mla: 656 bytes per token and layer (512 fp8, 4 fp32
    # scales, 64 bf16).
    assert kv_cache.layer_bytes_per_token(latent(), bytes_per_element=1, quantisation=FP8_LATENT) == 656


# Independent count: walking every layer, head and token

attentions = st.builds(
    lambda group, kv, dim, window, owns: heads(group * kv, kv, dim, window=window, owns_cache=owns),
    group=st.integers(1, 5),
    kv=st.integers(1, 6),
    dim=st.integers(1, 7),
    window=st.none() | st.integers(1, 12),
    owns=st.booleans(),
) | st.builds(
    lambda rank, rope: LatentAttention(
        num_heads=6, q_rank=None, kv_rank=rank, nope_head_dim=3, rope_head_dim=rope, value_head_dim=4
    ),
    rank=st.integers(1, 9),
    rope=st.integers(1, 5),
)
small_models = st.lists(st.tuples(attentions, st.integers(1, 3)), min_size=1, max_size=3).map(
    lambda groups: model_of(*groups, max_context=60)
)


@settings(max_examples=150, deadline=None)
@given(model=small_models, tokens=st.integers(0, 25), bytes_per_element=st.sampled_from([0.5, 1, 2, 4]))
def test_request_equals_the_walk(model: Model, tokens: int, bytes_per_element: float) -> None:
    walked = cache_walk.cached_elements(model, tokens=tokens) * bytes_per_element
    assert kv_cache.request_bytes(model, tokens=tokens, bytes_per_element=bytes_per_element) == walked


@settings(max_examples=100, deadline=None)
@given(layers=st.integers(1, 4), kv=st.integers(1, 5), group=st.integers(1, 4), width=st.integers(1, 6))
def test_the_plain_formula_equals_the_walk(layers: int, kv: int, group: int, width: int) -> None:
    walked = cache_walk.cached_elements(model_of((heads(group * kv, kv, width), layers)), tokens=1)
    plain = kv_cache.kv_bytes_per_token(num_layers=layers, num_kv_heads=kv, head_dim=width, bytes_per_element=2)
    assert plain == 2 * walked


def test_the_plain_formula_refuses_what_is_no_model() -> None:
    with pytest.raises(ValueError, match="num_kv_heads"):
        kv_cache.kv_bytes_per_token(num_layers=32, num_kv_heads=0, head_dim=128, bytes_per_element=2)
    with pytest.raises(ValueError, match="bytes_per_element"):
        kv_cache.kv_bytes_per_token(num_layers=32, num_kv_heads=8, head_dim=128, bytes_per_element=0)


@settings(max_examples=100, deadline=None)
@given(model=small_models, tokens=st.integers(0, 20))
def test_tokens_add_up_to_the_request(model: Model, tokens: int) -> None:
    one_by_one = sum(kv_cache.bytes_per_token(model, bytes_per_element=2, past_tokens=past) for past in range(tokens))
    assert one_by_one == kv_cache.request_bytes(model, tokens=tokens, bytes_per_element=2)


@settings(max_examples=300, deadline=None)
@given(kv=st.integers(1, 12), group=st.integers(1, 6), tp=st.integers(1, 30), window=st.none() | st.integers(1, 4))
def test_ranks_hold_what_their_query_heads_read(kv: int, group: int, tp: int, window: int | None) -> None:
    attention = heads(group * kv, kv, 5, window=window)
    split = kv % tp == 0 or tp % kv == 0
    if attention.num_heads % tp or not split:
        with pytest.raises(ValueError, match=f"tp={tp} must divide"):
            kv_cache.per_rank(model_of((attention, 3)), tokens=6, batch=1, tp=tp, bytes_per_element=2)
        return
    cache = kv_cache.per_rank(model_of((attention, 3)), tokens=6, batch=1, tp=tp, bytes_per_element=2)
    walked = [
        2 * cache_walk.cached_elements(model_of((attention, 3)), tokens=6, tp=tp, rank=rank) for rank in range(tp)
    ]
    assert walked == [cache.rank_bytes] * tp
    # Ranks together hold at least one copy, and exactly one as long as there are KV heads for all of them.
    assert cache.total >= cache.one_copy_bytes
    assert (cache.total == cache.one_copy_bytes) == (tp <= kv)
    assert cache.replication == max(1, tp / kv)


def test_a_refused_split_is_one_that_ranks_cannot_share_evenly() -> None:
    # 24 query heads in groups of 3 over 3 ranks: 8 query heads each, which straddle the groups; the ranks would hold
    # 3, 4 and 3 KV heads.
    attention = heads(24, 8, 5)
    assert [len(cache_walk.heads_read(attention, tp=3, rank=rank)) for rank in range(3)] == [3, 4, 3]
    with pytest.raises(
        ValueError, match=r"tp=3 must divide num_kv_heads=8 or be a multiple of it; try tp in \{1, 2, 4, 8, 24\}"
    ):
        kv_heads.kv_heads_per_rank(num_heads=24, num_kv_heads=8, tp=3)
    assert kv_heads.kv_heads_per_rank(num_heads=24, num_kv_heads=8, tp=4) == 2


@pytest.mark.parametrize(
    ("name", "tp", "dcp", "copies"),
    [("deepseek-v3", 8, 8, 1), ("kimi-k2", 16, 8, 2), ("kimi-k2", 16, 16, 1), ("qwen3-235b-a22b", 8, 2, 1)],
)
def test_decode_context_parallelism_as_vllms_case_study_has_it(name: str, tp: int, dcp: int, copies: int) -> None:
    # vLLM, docs/serving/context_parallel_deployment.md: R1 (V3's shape) and K2 with one latent, Qwen3 with 4 KV heads
    plain, shared = (
        kv_cache.per_rank(catalogue.model(name), tokens=4096, batch=2, tp=tp, bytes_per_element=2, dcp=each)
        for each in (1, dcp)
    )
    assert plain.replication == copies * dcp
    assert shared.replication == copies
    # each rank keeps every dcp-th token of what it would have kept
    kept = sum(plain.rank_bytes / 4096 for token in range(4096) if token % dcp == 1)
    assert shared.rank_bytes == pytest.approx(kept)


def test_ranks_without_copies_have_no_tokens_to_share() -> None:
    with pytest.raises(ValueError, match="dcp=2 must divide the copies on 8 ranks, of which there are 1"):
        kv_cache.per_rank(catalogue.model("llama-3-70b"), tokens=9, batch=1, tp=8, bytes_per_element=2, dcp=2)


def test_latent_is_on_every_rank_whole() -> None:
    # No heads to split: inference-sim issue 1712 divided it by tp. 576 elements of 2 bytes in 61 layers, on each of
    # 16 ranks.
    cache = kv_cache.per_rank(DEEPSEEK_V3, tokens=1, batch=3, tp=16, bytes_per_element=2)
    assert cache.rank_bytes == 3 * 70_272
    assert cache.replication == 16
    with pytest.raises(ValueError, match="tp=3 must divide num_heads=128"):
        kv_cache.per_rank(DEEPSEEK_V3, tokens=1, batch=3, tp=3, bytes_per_element=2)


# The classical mistakes, each as a relation between models


def test_architecture_decides_the_size() -> None:
    tokens = 5000
    mha, gqa, mqa = (
        kv_cache.request_bytes(model_of((heads(28, g, 128), 28)), tokens=tokens, bytes_per_element=2)
        for g in (28, 4, 1)
    )
    assert mha == 7 * gqa == 28 * mqa
    # Experts, query heads and hidden size are no part of it: only layers, KV heads and head_dim are.
    assert kv_cache.bytes_per_token(model_of((heads(64, 4, 128), 28)), bytes_per_element=2) == kv_cache.bytes_per_token(
        QWEN_25_7B, bytes_per_element=2
    )
    # head_dim is stated, not hidden / heads: Gemma-2-9B has 3584 / 16 = 224, but heads of 256.
    narrow = model_of((heads(16, 8, 224), 42))
    assert (
        kv_cache.bytes_per_token(narrow, bytes_per_element=2)
        / kv_cache.bytes_per_token(GEMMA_2_9B, bytes_per_element=2)
        == 0.875
    )


@pytest.mark.parametrize(
    ("model", "tokens", "full_over_windowed"),
    [
        # All-global over windowed, from the layer counts alone: 62 layers of 32,768 over 52 of 1,024 and 10 of 32,768
        # (Gemma 3: 5 local layers to 1 global).
        (GEMMA_3_27B, 32_768, 62 * 32 / (52 + 10 * 32)),
        (GEMMA_2_9B, 12_288, 2 * 3 / (1 + 3)),
        # Jiang et al., 2023, arXiv:2310.06825, section 2: the rolling buffer cuts the cache 8x at 32k tokens
        (MISTRAL_7B, 32_768, 8),
        (GPT_OSS_20B, 128, 1),
    ],
)
def test_windows_save(model: Model, tokens: int, full_over_windowed: float) -> None:
    full = tokens * kv_cache.bytes_per_token(model, bytes_per_element=2)
    assert full / kv_cache.request_bytes(model, tokens=tokens, bytes_per_element=2) == pytest.approx(
        full_over_windowed, rel=1e-12
    )


def test_window_conventions_differ_by_one_token_in_windowed_layers_only() -> None:
    def bytes_at(tokens: int, moment: str) -> float:
        return kv_cache.request_bytes(GPT_OSS_20B, tokens=tokens, bytes_per_element=2, moment=moment)

    slot = 2 * 8 * 64 * 2
    # not full yet: the next token still reads all 127
    assert bytes_at(127, "during_step") == bytes_at(127, "between_steps")
    assert bytes_at(128, "during_step") - bytes_at(128, "between_steps") == 12 * slot
    assert bytes_at(5000, "during_step") - bytes_at(5000, "between_steps") == 12 * slot
    # Once every window is full, a token adds to the 12 full layers only.
    assert kv_cache.bytes_per_token(GPT_OSS_20B, bytes_per_element=2, past_tokens=127) == 24 * slot
    assert kv_cache.bytes_per_token(GPT_OSS_20B, bytes_per_element=2, past_tokens=128) == 12 * slot


def test_layers_that_read_anothers_cache_add_nothing() -> None:
    shared = model_of((heads(8, 2, 256), 20), (heads(8, 2, 256, owns_cache=False), 10))
    assert kv_cache.request_bytes(shared, tokens=700, bytes_per_element=2) == kv_cache.request_bytes(
        model_of((heads(8, 2, 256), 20)), tokens=700, bytes_per_element=2
    )


# Quantised caches


def test_scales_are_counted() -> None:
    # head_dim 128 in int8 with one fp32 scale per token and head: 132 bytes instead of 128; forgetting the scales
    # gives 32/33 of it.
    bare = kv_cache.bytes_per_token(LLAMA_3_70B, bytes_per_element=1)
    scaled = kv_cache.bytes_per_token(LLAMA_3_70B, bytes_per_element=1, quantisation=PER_TOKEN_HEAD)
    assert bare / scaled == pytest.approx(32 / 33)
    assert scaled - bare == 80 * 2 * 8 * 4


def test_element_and_scales_apart_equal_the_format_of_dtypes() -> None:
    # dtypes spreads the scale of 16 values over them: 4 + 8/16 bits.
    apart = kv_cache.request_bytes(LLAMA_3_8B, tokens=77, bytes_per_element=0.5, quantisation=NVFP4)
    assert apart == kv_cache.request_bytes(LLAMA_3_8B, tokens=77, bytes_per_element=dtypes.bytes_per_element("nvfp4"))


def test_scales_do_not_survive_an_uneven_group() -> None:
    with pytest.raises(ValueError, match=r"elements_per_scale=16 must divide vector width=40"):
        kv_cache.bytes_per_token(model_of((heads(4, 4, 40), 2)), bytes_per_element=0.5, quantisation=NVFP4)
    assert kv_cache.bytes_per_token(
        model_of((heads(4, 4, 48), 2)), bytes_per_element=0.5, quantisation=NVFP4
    ) == 2 * 2 * 4 * (24 + 3)


def test_latent_scales_both_parts_unless_the_position_key_stays_plain() -> None:
    grouped = Quantisation(name="groups of 64", scale_bytes=2, elements_per_scale=64)
    assert kv_cache.layer_bytes_per_token(latent(), bytes_per_element=1, quantisation=grouped) == 512 + 64 + 2 * (8 + 1)


# What allocators hold

ALLOCATORS: list[Allocator] = [
    InformationMinimum(),
    HfDynamic(),
    HfDynamic(call_tokens=7),
    HfStatic(max_tokens=60),
    VllmPaged(block_tokens=4),
    VllmPaged(block_tokens=5, hybrid_manager=False),
    VllmAdmission(block_tokens=4, max_batched_tokens=6),
    LlamaCpp(ubatch_tokens=3),
    WholeContext(),
]
allocators = st.sampled_from(ALLOCATORS)


@settings(max_examples=200, deadline=None)
@given(tokens=st.integers(1, 60), window=st.none() | st.integers(2, 30), allocator=allocators)
def test_no_allocator_holds_less_than_the_minimum(tokens: int, window: int | None, allocator: Allocator) -> None:
    held, peak = allocator.slots(tokens=tokens, window=window), allocator.peak_slots(tokens=tokens, window=window)
    assert InformationMinimum().slots(tokens=tokens, window=window) <= held <= peak


@settings(max_examples=200, deadline=None)
@given(tokens=st.integers(1, 60), window=st.none() | st.integers(2, 30), allocator=allocators)
def test_peak_is_the_largest_amount_held_on_the_way(tokens: int, window: int | None, allocator: Allocator) -> None:
    assert allocator.peak_slots(tokens=tokens, window=window) == max(
        allocator.slots(tokens=t, window=window) for t in range(1, tokens + 1)
    )


def test_blocks_of_one_token_waste_nothing() -> None:
    for tokens in (1, 127, 128, 129, 3000):
        cache = {"tokens": tokens, "bytes_per_element": 2}
        held = kv_cache.held_bytes(GPT_OSS_20B, **cache, allocator=VllmPaged(block_tokens=1))
        assert held == kv_cache.request_bytes(GPT_OSS_20B, **cache)


def test_what_an_allocator_holds_beyond_what_is_needed() -> None:
    cache = {"tokens": 1000, "bytes_per_element": 2}
    needed = kv_cache.request_bytes(LLAMA_3_8B, **cache)
    assert needed == 1000 * 131_072
    # 1,000 tokens of Llama-3-8B fill 62.5 blocks of 16: 63 are held, and 8 of 1,008 slots are empty.
    paged = kv_cache.held_bytes(LLAMA_3_8B, **cache, allocator=by_name("vllm-paged", block_tokens=16))
    assert paged - needed == 8 * 131_072
    # A buffer for 8,192 tokens uses 1000/8192 of itself: the waste that paging removes (Kwon et al., 2023, section
    # 3.1).
    assert needed / kv_cache.held_bytes(LLAMA_3_8B, **cache, allocator=HfStatic(max_tokens=8192)) == 1000 / 8192


def test_windowed_layers_without_the_hybrid_manager_keep_everything() -> None:
    # vllm-project/vllm issue 43308: windowed layers held as if global. 52 of 62 layers of Gemma 3 27B hold 16 windows
    # at 16,384 tokens.
    on = kv_cache.held_bytes(GEMMA_3_27B, tokens=16_384, bytes_per_element=2, allocator=VllmPaged())
    off = kv_cache.held_bytes(
        GEMMA_3_27B, tokens=16_384, bytes_per_element=2, allocator=VllmPaged(hybrid_manager=False)
    )
    assert off / on == (62 * 16) / (52 + 10 * 16)


def test_cells_that_llama_cpp_says_it_creates() -> None:
    # Unsloth, pull request 7530, 2026 (llama-server's own lines, one slot, f16): Gemma 3 270M, of whose 18 layers 15
    # have a window of 512, takes 24 + 15 MiB for 8,192 tokens, and 18.0 MiB for 1,024
    window, full = heads(4, 1, 256, window=512), heads(4, 1, 256)
    small = model_of((window, 15), (full, 3))
    for tokens, printed_mib in ((8192, 39), (1024, 18), (8100, 39)):
        held = kv_cache.held_bytes(small, tokens=tokens, bytes_per_element=2, allocator=LlamaCpp())
        assert held == printed_mib * 2**20
    # as --swa-full has it: every layer alike
    assert kv_cache.held_bytes(small, tokens=8192, bytes_per_element=2, allocator=WholeContext()) == 18 * 8 * 2**20


@pytest.mark.parametrize(
    ("name", "block_bytes"), [("q8_0", 34), ("q5_1", 24), ("q5_0", 22), ("q4_1", 20), ("q4_0", 18), ("iq4_nl", 18)]
)
def test_blocks_of_llama_cpp(name: str, block_bytes: int) -> None:
    """ggml/src/ggml-common.h asserts the bytes of a block of 32; gguf's own table says the same."""
    form = cache_format(LLAMA_3_8B, cache=name.upper())
    block, in_bytes = GGML_QUANT_SIZES[GGMLQuantizationType[name.upper()]]
    assert (block, in_bytes) == (32, block_bytes)
    per_token = kv_cache.bytes_per_token(
        LLAMA_3_8B, bytes_per_element=form.bytes_per_element, quantisation=form.quantisation
    )
    assert per_token == 2 * 32 * 8 * 128 / block * in_bytes
    assert form.mean_bytes_per_element == block_bytes / 32


def test_an_indexed_cache_as_engines_keep_it() -> None:
    # sgl-project/sglang, pull request 11309, 2025: a rank's log says 975,424 tokens and 43.67 GB, and of 1,462,784
    # tokens 65.49 GB with their index keys (its GB are GiB)
    form = cache_format(catalogue.model("deepseek-v3.2"), cache="fp8")
    for tokens, printed_gib in ((975_424, 43.67), (1_462_784, 65.49)):
        held = kv_cache.request_bytes(
            catalogue.model("deepseek-v3.2"),
            tokens=tokens,
            bytes_per_element=form.bytes_per_element,
            quantisation=form.quantisation,
        )
        assert held / 2**30 == pytest.approx(printed_gib, abs=0.01)
    with pytest.raises(ValueError, match=r"cache='fp8_ds_mla' is a format of latents, and test has none"):
        cache_format(LLAMA_3_8B, cache="fp8_ds_mla")
    with pytest.raises(ValueError, match=r"takes bytes by the vector"):
        _ = form.mean_bytes_per_element


def test_a_long_prefill_keeps_its_whole_prompt_in_hf_dynamic() -> None:
    prefill = kv_cache.held_bytes(
        MISTRAL_7B, tokens=30_000, bytes_per_element=2, allocator=HfDynamic(call_tokens=30_000)
    )
    decode = kv_cache.held_bytes(MISTRAL_7B, tokens=30_001, bytes_per_element=2, allocator=HfDynamic())
    assert (prefill / decode, decode) == (
        30_000 / 4096,
        kv_cache.request_bytes(MISTRAL_7B, tokens=30_001, bytes_per_element=2),
    )


# Inverse questions


@settings(max_examples=150, deadline=None)
@given(model=small_models, tokens=st.integers(1, 40), free_bytes=st.integers(0, 200_000), allocator=allocators)
def test_most_requests_that_fit_fit_and_one_more_does_not(
    model: Model, tokens: int, free_bytes: int, allocator: Allocator
) -> None:
    if any(layer.attention.window == 1 for layer in model.layers() if isinstance(layer.attention, Attention)):
        return
    request = kv_cache.held_bytes(model, tokens=tokens, bytes_per_element=2, allocator=allocator, peak=True)
    if request == 0:  # no layer of this model caches anything of its own
        return
    batch = kv_capacity.max_concurrent_requests(
        model, tokens=tokens, free_bytes=free_bytes, bytes_per_element=2, allocator=allocator
    )
    assert batch * request <= free_bytes < (batch + 1) * request


@settings(max_examples=150, deadline=None)
@given(model=small_models, batch=st.integers(1, 5), free_bytes=st.integers(0, 60_000), allocator=allocators)
def test_longest_context_fits_and_one_more_token_does_not(
    model: Model, batch: int, free_bytes: int, allocator: Allocator
) -> None:
    if any(layer.attention.window == 1 for layer in model.layers() if isinstance(layer.attention, Attention)):
        return

    def held(tokens: int) -> float:
        return batch * kv_cache.held_bytes(model, tokens=tokens, bytes_per_element=2, allocator=allocator, peak=True)

    longest = kv_capacity.longest_context(
        model, batch=batch, free_bytes=free_bytes, bytes_per_element=2, allocator=allocator
    )
    assert longest == 0 or held(longest) <= free_bytes
    assert longest == model.max_context or held(longest + 1) > free_bytes


@settings(max_examples=40, deadline=None)
@given(
    windows=st.lists(st.none() | st.integers(1, 14), min_size=1, max_size=3),
    block_tokens=st.integers(1, 6),
    tokens=st.integers(1, 40),
    budget=st.integers(0, 900),
)
def test_most_requests_that_fit_equal_requests_grown_side_by_side(
    windows: list[int | None], block_tokens: int, tokens: int, budget: int
) -> None:
    model = model_of(*((heads(2, 1, 1, window=window), 1) for window in windows))
    layers = [(window, 2.0) for window in windows]  # one KV head of one element, K and V, one byte each
    grown = block_allocator.requests_that_fit(
        layers=layers, block_tokens=block_tokens, tokens=tokens, budget_bytes=budget
    )
    allocator = VllmPaged(block_tokens=block_tokens)
    assert (
        kv_capacity.max_concurrent_requests(
            model, tokens=tokens, free_bytes=budget, bytes_per_element=1, allocator=allocator
        )
        == grown
    )


def test_no_allocator_beats_the_bound() -> None:
    free_bytes = 40 * GiB
    bound = kv_capacity.max_concurrent_requests(GEMMA_3_27B, tokens=5000, free_bytes=free_bytes, bytes_per_element=2)
    for allocator in (HfDynamic(), HfStatic(max_tokens=5000), VllmPaged(), VllmAdmission(max_batched_tokens=2048)):
        assert (
            kv_capacity.max_concurrent_requests(
                GEMMA_3_27B, tokens=5000, free_bytes=free_bytes, bytes_per_element=2, allocator=allocator
            )
            <= bound
        )


def test_longest_context_stops_where_positions_or_the_buffer_end() -> None:
    plenty = 10_000 * GiB
    assert kv_capacity.longest_context(QWEN_25_7B, batch=1, free_bytes=plenty, bytes_per_element=2) == 32_768
    assert (
        kv_capacity.longest_context(
            QWEN_25_7B, batch=1, free_bytes=plenty, bytes_per_element=2, allocator=HfStatic(max_tokens=900)
        )
        == 900
    )
    assert kv_capacity.longest_context(QWEN_25_7B, batch=1, free_bytes=0, bytes_per_element=2) == 0
    assert kv_capacity.max_concurrent_requests(QWEN_25_7B, tokens=10, free_bytes=0, bytes_per_element=2) == 0


# Scaling: the dimensional analysis


@pytest.mark.parametrize("model", ZOO)
def test_doubling_bytes_doubles_bytes_and_leaves_counts(model: Model) -> None:
    one, two = (kv_cache.request_bytes(model, tokens=999, bytes_per_element=e) for e in (1, 2))
    assert two == 2 * one
    for allocator in (InformationMinimum(), VllmPaged(), HfStatic(max_tokens=2000)):
        batches = {
            kv_capacity.max_concurrent_requests(
                model, tokens=999, free_bytes=e * 3 * GiB, bytes_per_element=e, allocator=allocator
            )
            for e in (0.5, 1, 2, 4)
        }
        contexts = {
            kv_capacity.longest_context(
                model, batch=3, free_bytes=e * GiB / 8, bytes_per_element=e, allocator=allocator
            )
            for e in (0.5, 1, 2, 4)
        }
        assert len(batches) == len(contexts) == 1


def test_batch_multiplies() -> None:
    one, many = (
        kv_cache.per_rank(GEMMA_2_9B, tokens=9000, batch=batch, tp=2, bytes_per_element=2) for batch in (1, 13)
    )
    assert many.rank_bytes == 13 * one.rank_bytes
    assert many.replication == one.replication == 1


# Refusals


@pytest.mark.parametrize("tp", [3, 6, 128])
def test_query_heads_must_split(tp: int) -> None:
    with pytest.raises(ValueError, match=rf"tp={tp} must divide num_heads=64; try tp in \{{1, 2, 4, 8, 16, 32, 64\}}"):
        kv_cache.bytes_per_token(LLAMA_3_70B, bytes_per_element=2, tp=tp)
    # 64 ranks are the most: each KV head then exists 8 times.
    assert kv_cache.per_rank(LLAMA_3_70B, tokens=1, batch=1, tp=64, bytes_per_element=2).replication == 8


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"tokens": 2.5}, r"tokens=2\.5 must be a whole number"),
        ({"tokens": -1}, "tokens=-1 must be a whole number of at least 0"),
        ({"bytes_per_element": 0}, "bytes_per_element=0 must be greater than 0"),
        ({"bytes_per_element": "bf16"}, "bytes_per_element='bf16' must be a number"),
        ({"tp": 0}, "tp=0 must be a whole number of at least 1"),
        ({"moment": "during"}, "moment='during' is not known; did you mean 'during_step'"),
    ],
)
def test_request_refuses(broken: dict[str, object], message: str) -> None:
    asked = {"tokens": 2, "bytes_per_element": 2, "tp": 1, "moment": "during_step"}
    assert kv_cache.request_bytes(LLAMA_3_8B, **asked) == 2 * 131_072  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=message):
        kv_cache.request_bytes(LLAMA_3_8B, **(asked | broken))  # type: ignore[arg-type]


def test_ranks_refuse_an_empty_cache() -> None:
    with pytest.raises(ValueError, match="batch=0 must be a whole number of at least 1"):
        kv_cache.per_rank(LLAMA_3_8B, tokens=1, batch=0, tp=1, bytes_per_element=2)
    with pytest.raises(ValueError, match="tokens=0 must be a whole number of at least 1"):
        kv_cache.per_rank(LLAMA_3_8B, tokens=0, batch=1, tp=1, bytes_per_element=2)
    assert kv_cache.per_rank(LLAMA_3_8B, tokens=1, batch=1, tp=1, bytes_per_element=2).total == 131_072


def test_element_size_has_no_default() -> None:
    with pytest.raises(TypeError, match="bytes_per_element"):
        kv_cache.bytes_per_token(LLAMA_3_8B)  # type: ignore[call-arg]


def test_allocators_refuse() -> None:
    with pytest.raises(ValueError, match="tokens=901 must not exceed max_tokens=900; reserve at least 901"):
        HfStatic(max_tokens=900).slots(tokens=901, window=None)
    assert HfStatic(max_tokens=900).slots(tokens=900, window=None) == 900
    with pytest.raises(ValueError, match="window=1 must be at least 2 for hf-dynamic"):
        HfDynamic().slots(tokens=5, window=1)
    assert HfDynamic().slots(tokens=5, window=2) == 2
    with pytest.raises(ValueError, match="allocator='vllm-page' is not known; did you mean 'vllm-paged'"):
        by_name("vllm-page")
    with pytest.raises(ValueError, match="block_tokens=0 must be a whole number of at least 1"):
        by_name("vllm-paged", block_tokens=0)
    with pytest.raises(ValueError, match="free_bytes=-1 must be at least 0"):
        kv_capacity.max_concurrent_requests(LLAMA_3_8B, tokens=10, free_bytes=-1, bytes_per_element=2)


def test_a_hybrid_is_spread_over_ranks_without_context_parallelism() -> None:
    """Qwen3-Next on eight: states beside caches make the bytes of all ranks no whole multiple of one copy's."""
    spread = kv_cache.per_rank(catalogue.model("qwen3-next-80b-a3b"), tokens=1, batch=1, tp=8, bytes_per_element=2)
    assert spread.replication % 1 > 0
