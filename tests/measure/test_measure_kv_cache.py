"""Cache tensors of small transformers models with the same heads, weighed and held against the formulas, byte for
byte.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import AutoConfig

from threeloops.measure.product_loop import kv_cache as weigh
from threeloops.models.architecture import Attention, DenseMlp, LatentAttention, Layer, Model
from threeloops.models.hf_config import from_hf_config
from threeloops.product_loop import kv_cache, recurrent_state
from threeloops.product_loop.kv_allocators import HfDynamic, HfStatic
from threeloops.product_loop.kv_quantisation import PER_TOKEN_HEAD

BATCH = 3
SHAPE = dict(vocab_size=32, hidden_size=48, intermediate_size=16, num_attention_heads=6, max_position_embeddings=64)
GROUPED = SHAPE | dict(num_key_value_heads=2, head_dim=10)  # neither hidden / heads = 8 nor a power of two
MLP = DenseMlp(intermediate=16, gated=True, activation="silu")


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def model_of(*attentions: tuple[Attention | LatentAttention, int]) -> Model:
    groups = tuple(
        (Layer(attention=attention, mlp=MLP, norm="rmsnorm", num_norms=2), num_layers)
        for attention, num_layers in attentions
    )
    return Model(name="small", hidden=48, vocab=32, groups=groups, tied_head=True, max_context=64)


def heads(num_kv_heads: int, *, window: int | None = None, owns_cache: bool = True) -> Attention:
    return Attention(num_heads=6, num_kv_heads=num_kv_heads, head_dim=10, window=window, owns_cache=owns_cache)


# Llama's MHA, GQA and MQA; every window below is shorter than the prompt. What the formula takes is written out here,
# not read from the config.
CASES: dict[str, tuple[dict[str, Any], Model]] = {
    "MHA": (
        dict(model_type="llama", num_hidden_layers=3, **GROUPED) | {"num_key_value_heads": 6},
        model_of((heads(6), 3)),
    ),
    "GQA": (dict(model_type="llama", num_hidden_layers=3, **GROUPED), model_of((heads(2), 3))),
    "MQA": (
        dict(model_type="llama", num_hidden_layers=3, **GROUPED) | {"num_key_value_heads": 1},
        model_of((heads(1), 3)),
    ),
    "window in all layers (Mistral)": (
        dict(model_type="mistral", num_hidden_layers=3, sliding_window=5, **GROUPED),
        model_of((heads(2, window=5), 3)),
    ),
    "window in every other layer (Gemma 2)": (
        dict(model_type="gemma2", num_hidden_layers=5, sliding_window=5, **GROUPED),
        model_of((heads(2, window=5), 3), (heads(2), 2)),
    ),
    "window in five layers of six (Gemma 3)": (
        dict(model_type="gemma3_text", num_hidden_layers=7, sliding_window=7, **GROUPED),
        model_of((heads(2, window=7), 6), (heads(2), 1)),
    ),
    "window beside sinks (gpt-oss)": (
        # Position scaling changes no size; told apart from the defaults, which do not suit so short a context.
        dict(
            model_type="gpt_oss",
            num_hidden_layers=3,
            sliding_window=4,
            num_local_experts=2,
            num_experts_per_tok=1,
            **GROUPED,
        )
        | {"rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0}},
        model_of((heads(2, window=4), 2), (heads(2), 1)),
    ),
    "latent (DeepSeek-V3)": (
        dict(
            model_type="deepseek_v3",
            num_hidden_layers=3,
            num_key_value_heads=6,
            q_lora_rank=14,
            kv_lora_rank=18,
            qk_nope_head_dim=12,
            qk_rope_head_dim=8,
        )
        | dict(
            v_head_dim=11,
            n_routed_experts=4,
            num_experts_per_tok=2,
            n_group=1,
            topk_group=1,
            first_k_dense_replace=1,
            moe_intermediate_size=16,
        )
        | SHAPE,
        model_of(
            (
                LatentAttention(
                    num_heads=6, q_rank=14, kv_rank=18, nope_head_dim=12, rope_head_dim=8, value_head_dim=11
                ),
                3,
            )
        ),
    ),
    "layers that read another's cache (Gemma 3n)": (
        dict(model_type="gemma3n_text", num_hidden_layers=5, num_kv_shared_layers=2, sliding_window=5, **GROUPED)
        | {
            "layer_types": [
                "sliding_attention",
                "full_attention",
                "sliding_attention",
                "sliding_attention",
                "full_attention",
            ]
        }
        | dict(
            vocab_size_per_layer_input=32,
            hidden_size_per_layer_input=8,
            laurel_rank=4,
            activation_sparsity_pattern=[0.0] * 5,
        ),
        model_of(
            (heads(2, window=5), 2),
            (heads(2), 1),
            (heads(2, window=5, owns_cache=False), 1),
            (heads(2, owns_cache=False), 1),
        ),
    ),
}
every_case = pytest.mark.parametrize(("config", "model"), CASES.values(), ids=CASES.keys())


def predicted(model: Model, **asked: Any) -> float:
    return BATCH * kv_cache.held_bytes(model, bytes_per_element=2, **asked)


@every_case
def test_dynamic_cache(config: dict[str, Any], model: Model) -> None:
    small = weigh.small_model(config, dtype=torch.bfloat16)
    # Right after the prefill, a slice holds on to the whole prompt; from the first decoded token on, to one window.
    for prompt, decoded, last_call in ((13, 0, 13), (13, 1, 1), (13, 6, 1), (3, 0, 3), (3, 1, 1)):
        weight = weigh.weighed_cache(small, batch=BATCH, prompt_tokens=prompt, decode_tokens=decoded)
        tokens = prompt + decoded
        assert weight.storage_bytes == predicted(model, tokens=tokens, allocator=HfDynamic(call_tokens=last_call))
        between_steps = kv_cache.request_bytes(model, tokens=tokens, bytes_per_element=2, moment="between_steps")
        assert weight.tensor_bytes == BATCH * between_steps


@every_case
def test_a_model_read_from_the_config_has_the_same_cache(config: dict[str, Any], model: Model) -> None:
    read = from_hf_config(AutoConfig.for_model(**config).to_dict(), name="read")
    for tokens in (3, 20):
        assert kv_cache.request_bytes(read, tokens=tokens, bytes_per_element=2) == kv_cache.request_bytes(
            model, tokens=tokens, bytes_per_element=2
        )


@every_case
def test_static_cache(config: dict[str, Any], model: Model) -> None:
    small = weigh.small_model(config, dtype=torch.bfloat16)
    weight = weigh.weighed_cache(
        small, batch=BATCH, prompt_tokens=13, decode_tokens=2, cache=weigh.static_cache(small, max_tokens=20)
    )
    assert weight.storage_bytes == weight.tensor_bytes == predicted(model, tokens=15, allocator=HfStatic(max_tokens=20))


@pytest.mark.parametrize(("dtype", "bytes_per_element"), [(torch.float32, 4), (torch.float16, 2), (torch.bfloat16, 2)])
def test_element_size(dtype: torch.dtype, bytes_per_element: int) -> None:
    config, model = CASES["GQA"]
    weight = weigh.weighed_cache(weigh.small_model(config, dtype=dtype), batch=BATCH, prompt_tokens=9)
    assert weight.tensor_bytes == BATCH * kv_cache.request_bytes(model, tokens=9, bytes_per_element=bytes_per_element)


def test_layer_tokens_show_the_pattern() -> None:
    config, _ = CASES["window in every other layer (Gemma 2)"]
    weight = weigh.weighed_cache(weigh.small_model(config, dtype=torch.bfloat16), batch=1, prompt_tokens=11)
    assert weight.layer_tokens == (4, 11, 4, 11, 4)
    config, _ = CASES["layers that read another's cache (Gemma 3n)"]
    weight = weigh.weighed_cache(weigh.small_model(config, dtype=torch.bfloat16), batch=1, prompt_tokens=11)
    assert weight.layer_tokens == (4, 11, 4, 0, 0)


def test_latent_is_cached_compressed() -> None:
    # Older remote code cached every head decompressed: 6 heads of (12 + 8) + 11 numbers, against 18 + 8 here.
    config, model = CASES["latent (DeepSeek-V3)"]
    weight = weigh.weighed_cache(weigh.small_model(config, dtype=torch.bfloat16), batch=1, prompt_tokens=10)
    decompressed = 3 * 6 * ((12 + 8) + 11) * 10 * 2
    assert decompressed / weight.tensor_bytes == (6 * 31) / 26
    assert weight.tensor_bytes == 10 * kv_cache.bytes_per_token(model, bytes_per_element=2)


def test_int8_with_its_scales() -> None:
    config, model = CASES["GQA"]
    weight = weigh.int8_weight(
        weigh.filled_cache(weigh.small_model(config, dtype=torch.bfloat16), batch=BATCH, prompt_tokens=9)
    )
    assert weight.total == BATCH * kv_cache.request_bytes(
        model, tokens=9, bytes_per_element=1, quantisation=PER_TOKEN_HEAD
    )
    assert weight.bytes_per_element == BATCH * kv_cache.request_bytes(model, tokens=9, bytes_per_element=1)
    # Rounding to 127 steps on either side of zero is off by half a step at most.
    assert 0 < weight.largest_relative_error <= 0.5 / 127 * 1.001


def test_ranks_cache_their_own_heads() -> None:
    # One rank of a tensor-parallel model is a model with its share of the heads: 6 query heads and 2 KV heads over 2
    # ranks leave 3 and 1; over 6 ranks 1 and 1.
    config, model = CASES["GQA"]
    for tp, share in (
        (2, dict(num_attention_heads=3, num_key_value_heads=1)),
        (6, dict(num_attention_heads=1, num_key_value_heads=1)),
    ):
        weight = weigh.weighed_cache(
            weigh.small_model(config | share, dtype=torch.bfloat16), batch=BATCH, prompt_tokens=9
        )
        assert (
            weight.tensor_bytes
            == kv_cache.per_rank(model, tokens=9, batch=BATCH, tp=tp, bytes_per_element=2).rank_bytes
        )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda model: weigh.weighed_cache(model, batch=0, prompt_tokens=2),
            "batch=0 must be a whole number of at least 1",
        ),
        (
            lambda model: weigh.weighed_cache(model, batch=1, prompt_tokens=0),
            "prompt_tokens=0 must be a whole number of at least 1",
        ),
        (
            lambda model: weigh.weighed_cache(model, batch=1, prompt_tokens=2, decode_tokens=-1),
            "decode_tokens=-1 must be a whole number of at least 0",
        ),
        (lambda model: weigh.static_cache(model, max_tokens=0), "max_tokens=0 must be a whole number of at least 1"),
    ],
)
def test_refusals(call: Callable[[Any], object], message: str) -> None:
    small = weigh.small_model(CASES["MQA"][0], dtype=torch.bfloat16)
    assert weigh.weighed_cache(small, batch=1, prompt_tokens=1).layer_tokens == (1, 1, 1)
    with pytest.raises(ValueError, match=message):
        call(small)


def test_a_hybrid_keeps_a_state_that_does_not_grow() -> None:
    heads_of = {"linear_num_key_heads": 2, "linear_num_value_heads": 6, "linear_key_head_dim": 5}
    config = (
        GROUPED
        | heads_of
        | dict(model_type="qwen3_next", num_hidden_layers=4, linear_value_head_dim=7, linear_conv_kernel_dim=4)
        | dict(num_experts=2, num_experts_per_tok=1, moe_intermediate_size=8, shared_expert_intermediate_size=8)
    )
    model = weigh.small_model(config, dtype=torch.bfloat16)
    layer = recurrent_state.DeltaState(key_heads=2, value_heads=6, key_head_dim=5, value_head_dim=7, conv_entries=4)
    # transformers' reference keeps the matrices as it computes them, in fp32
    expected = 3 * BATCH * recurrent_state.state_bytes(layer, state_bytes_per_element=4, conv_bytes_per_element=2)
    for tokens in (9, 30):
        cache = weigh.filled_cache(model, batch=BATCH, prompt_tokens=tokens, decode_tokens=2)
        assert weigh.state_bytes(cache) == expected
        one_full_layer = kv_cache.request_bytes(model_of((heads(2), 1)), tokens=tokens + 2, bytes_per_element=2)
        assert weigh.cache_weight(cache).tensor_bytes == BATCH * one_full_layer
