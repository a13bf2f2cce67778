"""The interview sheet's figures of attention and of serving: what `figures` asks for by name."""

import dataclasses

from threeloops import units
from threeloops.dtypes import bytes_per_element
from threeloops.facts.hardware import part
from threeloops.inner_loop import attention_io
from threeloops.models import catalogue
from threeloops.models.architecture import Attention
from threeloops.models.parameters import model_parameters
from threeloops.operations import attention, roofline
from threeloops.product_loop import batching, decode_floor, kv_allocators, kv_cache, kv_transfer, serving, speculative

H100 = "h100-sxm5"
OLD, NEW = "llama-2-7b", "llama-3-8b"  # without and with grouped-query attention
TOKENS, BLOCK, USERS, CHUNK = 8192, 16, 32, 512
FULL = 1024  # users without a cache: so many that arithmetic binds
ACCEPTED, DRAFTED, DRAFT_COST = 0.8, 5, 0.05
LAUNCH_S = 10 * units.us  # of the host for one kernel, and of one small all-reduce: the interview's round number
BF16 = bytes_per_element("bf16")


def values(*, gpus: int, int4_bits: float) -> dict[str, str]:
    """Name -> figure as it is printed."""
    return {**_attention(), **_caches(), **_steps(gpus, int4_bits), **_prompts(), **_drafts()}


def bytes_shown(value: float, base: int) -> str:
    """Bytes, in GB or in GiB."""
    return units.fmt_bytes(value, base=base)


def times(value: float) -> str:
    """A factor.

    >>> times(2.948)
    '2.95×'
    """
    return f"{value:.3g}×"


def _attention() -> dict[str, str]:
    old = catalogue.model(OLD)
    head = old.groups[0][0].attention.head_dim if isinstance(old.groups[0][0].attention, Attention) else 0
    one = {"batch": 1, "num_heads": 1, "query_tokens": TOKENS}
    peak, bandwidth = part(H100).peak_flops_per_s("bf16"), part(H100)["memory_bytes_per_s"]
    apart, fused = (
        roofline.time(
            attention.attention(
                batch=1,
                num_heads=1,
                num_kv_heads=1,
                head_dim=head,
                query_tokens=TOKENS,
                context_tokens=TOKENS,
                causal="full",
                fused=fused,
                bytes_per_element=BF16,
            ),
            peak_flops_per_s=peak,
            memory_bytes_per_s=bandwidth,
        )
        for fused in (False, True)
    )
    return {
        "flash_speed": times(apart.lower_bound_s / fused.lower_bound_s),
        "scores_s": units.fmt_seconds(apart.lower_bound_s),
        "attention_s": units.fmt_seconds(fused.lower_bound_s),
        "scores": bytes_shown(attention_io.score_matrix_bytes(context_tokens=TOKENS, bytes_per_element=BF16, **one), 2),
        "statistics": bytes_shown(attention_io.row_statistics_bytes(**one), 2),
        "head_dim": f"{head}",
        "attention_output": bytes_shown(TOKENS * head * BF16, 2),
    }


def _caches() -> dict[str, str]:
    old, new = catalogue.model(OLD), catalogue.model(NEW)
    token = {key: kv_cache.bytes_per_token(model, bytes_per_element=BF16) for key, model in ((OLD, old), (NEW, new))}
    paged = kv_allocators.by_name("vllm-paged", block_tokens=BLOCK)
    spare = (
        kv_cache.held_bytes(new, tokens=TOKENS + 1, bytes_per_element=BF16, allocator=paged) - (TOKENS + 1) * token[NEW]
    )
    return {
        "kv_token": bytes_shown(token[OLD], 2),
        "kv_context": bytes_shown(kv_cache.request_bytes(old, tokens=TOKENS, bytes_per_element=BF16), 10),
        "kv_token_new": bytes_shown(token[NEW], 2),
        "kv_kept": bytes_shown(_request_bytes(), 10),
        "caches": bytes_shown(USERS * _request_bytes(), 10),
        "kv_shared": times(_ungrouped()),
        "spare": bytes_shown(spare, 2),
    }


def _request_bytes() -> float:
    """Cache of one user, newer model."""
    return kv_cache.request_bytes(catalogue.model(NEW), tokens=TOKENS, bytes_per_element=BF16)


def _ungrouped() -> float:
    """Cache with a KV head for each query head, over that with shared ones."""
    grouped = catalogue.model(NEW).groups[0][0].attention
    assert isinstance(grouped, Attention)
    every = dataclasses.replace(grouped, num_kv_heads=grouped.num_heads)
    shares = [kv_cache.layer_bytes_per_token(one, bytes_per_element=BF16) for one in (every, grouped)]
    return shares[0] / shares[1]


def _weights_bytes() -> float:
    return model_parameters(catalogue.model(NEW)).total * BF16


def _step_s(*, weights_bytes: float, cache_bytes: float, batch: int) -> float:
    """A decode step of the newer model at its floor."""
    return serving.decode_step_s(
        weights_bytes=weights_bytes,
        cache_bytes=cache_bytes,
        batch=batch,
        flops_per_token=_flops_per_token(),
        memory_bytes_per_s=part(H100)["memory_bytes_per_s"],
        peak_flops_per_s=part(H100).peak_flops_per_s("bf16"),
    )


def _flops_per_token() -> float:
    return 2 * model_parameters(catalogue.model(NEW)).total


def _steps(gpus: int, int4_bits: float) -> dict[str, str]:
    weights, cache = _weights_bytes(), USERS * _request_bytes()
    alone_s = _step_s(weights_bytes=weights, cache_bytes=0, batch=1)
    together_s, halved_s, ungrouped_s = (
        _step_s(weights_bytes=weights, cache_bytes=cache * share, batch=USERS) for share in (1, 1 / 2, _ungrouped())
    )
    split_s = decode_floor.tensor_parallel_step_s(
        weights_bytes=weights,
        cache_bytes=0,
        tp=gpus,
        memory_bytes_per_s=part(H100)["memory_bytes_per_s"],
        all_reduces=2 * catalogue.model(NEW).num_layers,
        all_reduce_s=LAUNCH_S,
    )
    gain = batching.slots_gain(
        weights_bytes=weights, cache_bytes_per_request=_request_bytes(), slots=1, more_slots=USERS
    )
    narrow = int4_bits / (8 * BF16)
    return {
        "weights": bytes_shown(weights, 10),
        "token_floor": units.fmt_seconds(alone_s),
        "int4_floor": units.fmt_seconds(_step_s(weights_bytes=weights * narrow, cache_bytes=0, batch=1)),
        "split_floor": units.fmt_seconds(split_s),
        "batch_gain": times(gain),
        "cache_gain": times(together_s / halved_s),
        "gqa_speed": times(ungrouped_s / together_s),
    }


def _prompts() -> dict[str, str]:
    read_s = {
        name: serving.prefill_s(
            tokens=tokens,
            flops_per_token=_flops_per_token(),
            peak_flops_per_s=part(H100).peak_flops_per_s("bf16"),
            utilisation=1.0,
        )
        for name, tokens in (("prompt_s", TOKENS), ("chunk_s", CHUNK))
    }
    rate = part("infiniband-ndr")["bytes_per_s_one_way"]
    sent_s = kv_transfer.transfer_s(cache_bytes=_request_bytes(), hops_bytes_per_s=[rate])
    return {name: units.fmt_seconds(seconds) for name, seconds in (*read_s.items(), ("handover_s", sent_s))}


def _drafts() -> dict[str, str]:
    target, draft = (
        speculative.DecodeCosts(
            weights_bytes=cost * _weights_bytes(), cache_bytes_per_request=0, flops_per_token=cost * _flops_per_token()
        )
        for cost in (1, DRAFT_COST)
    )
    full = speculative.batch_speedup(
        target=target,
        draft=draft,
        accepted_share=ACCEPTED,
        drafted=DRAFTED,
        batch=FULL,
        memory_bytes_per_s=part(H100)["memory_bytes_per_s"],
        peak_flops_per_s=part(H100).peak_flops_per_s("bf16"),
    )
    return {
        "checked": f"{speculative.tokens_per_check(accepted_share=ACCEPTED, drafted=DRAFTED):.2f}",
        "drafting": times(speculative.speedup(accepted_share=ACCEPTED, drafted=DRAFTED, draft_cost=DRAFT_COST)),
        "drafting_full": times(full),
    }
