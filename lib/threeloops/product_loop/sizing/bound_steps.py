"""Bound steps: seconds that no engine beats, of a served layout's decode steps and of its prompts, by the roofline.

>>> from threeloops.facts import hardware
>>> from threeloops.models import catalogue
>>> one = ServedLayout(
...     model=catalogue.model("llama-3-8b"),
...     part=hardware.part("h100-sxm5"),
...     weights="bf16",
...     cache="bf16",
...     tp=1,
...     memory_utilisation=0.92,
...     other_bytes=3e9,
... )
>>> f"{bound_step_s(one, requests=64, context=1650) * 1e3:.1f} ms for 64 requests of 1,650 tokens"
'8.7 ms for 64 requests of 1,650 tokens'

Source: Williams, Waterman, Patterson, 2009, doi:10.1145/1498765.1498785
"""

import math
from collections.abc import Callable, Iterable

from threeloops import dtypes
from threeloops.facts.hardware import Part
from threeloops.models.architecture import Attention, LatentAttention, MoeMlp
from threeloops.models.forward_step import MATRIX, ForwardStep, Op
from threeloops.models.transformer import layer_ops, model_ops
from threeloops.operations import roofline
from threeloops.product_loop import kv_cache
from threeloops.product_loop.sizing.adapter_times import bound_adapters_s
from threeloops.product_loop.sizing.request_lengths import RequestLengths
from threeloops.product_loop.sizing.served_layout import ServedLayout
from threeloops.product_loop.sizing.stored_weights import mean_weight_bytes

ATTENTION, EXPERTS = "attention", "expert_"
WIDE_PEAKS = ("bf16", "fp16", "fp32")  # the first that a part lists
WIDE_FORMAT = "bf16"  # of activations, and of products in which weights alone are narrow


def bound_step_s(layout: ServedLayout, *, requests: int, context: int, checked: int = 1) -> float:
    """Seconds that no engine beats, of one decode step of requests with so many tokens each.

    Formula:  sum over products and attentions of max(FLOPs / peak, bytes / bandwidth) of one GPU, one after another; of
              the group with most requests
    Assumes:  datasheet rates; norms and all else that is no product ride along with one; every GPU takes an equal
              share of each, but of a cache what it keeps: a copy, where tp is more than the KV heads, or 1 / dcp of
              one; exchanges cost nothing; latent attention absorbed in decode; an even router
    Units:    checked: tokens of each request in the step, which reads its cache once for all of them
    Counted:  tests.product_loop.sizing.test_request_times.test_a_small_batch_reads_weights_and_caches
    """
    own = math.ceil(requests / layout.dp)
    read = sum(_pass_s(layout, "decode", requests * checked, own * checked, context))
    adapted = sum(layout_adapters_s(layout, own=own, requests=requests, each=checked))
    return read + _cached_s(layout, own, context, checked) + adapted


def bound_prompt_s(layout: ServedLayout, lengths: RequestLengths) -> tuple[float, float]:
    """The same of one prompt by itself, and of that what prompts of other groups add to: the experts."""
    own_s, shared_s = _pass_s(layout, "prefill", 1, 1, lengths.new)
    if lengths.kept:  # the new tokens attend to the whole prompt
        whole, kept, new = (_attention_s(layout, tokens) for tokens in (lengths.prompt, lengths.kept, lengths.new))
        own_s += whole - kept - new
    adapted_s, adapted_shared_s = layout_adapters_s(layout, own=1, requests=1, each=lengths.new)
    shared_s += adapted_shared_s
    return own_s + adapted_s + shared_s, shared_s


def layout_adapters_s(layout: ServedLayout, *, own: int, requests: int, each: int) -> tuple[float, float]:
    """Seconds that adapters add at least: beside a group's own products, for `each` tokens of its own requests, and
    beside the experts, for those of all requests.

    Formula:  adapter_times.bound_adapters_s
    Source:   as bound_adapters_s
    Counted:  tests.product_loop.sizing.test_adapter_times.test_groups_share_adapters_of_experts
    """
    if layout.adapters is None:
        return 0.0, 0.0
    return bound_adapters_s(
        layout.model,
        layout.part,
        layout.adapters,
        tp=layout.tp,
        ep=layout.ep,
        dp=layout.dp,
        tokens=own * each,
        requests=own,
        of_all=(requests * each, requests),
    )


def _ops(layout: ServedLayout, phase: str, batch: int, sequence: int) -> tuple[Op, ...]:
    return model_ops(layout.model, _step(layout, batch, sequence, phase))


def _step(layout: ServedLayout, batch: int, sequence: int, phase: str = "decode") -> ForwardStep:
    layers = [layer for layer, _ in layout.model.groups]
    latent = "absorbed" if phase == "decode" else "expanded"
    return ForwardStep(
        phase=phase,
        batch=batch,
        sequence=sequence,
        causal="exact",
        fused_attention=True,
        logits="last",
        bytes_per_element=dtypes.bytes_per_element(WIDE_FORMAT),
        weight_bytes_per_element=mean_weight_bytes(layout.model, layout.weights),
        kv_bytes_per_element=layout.cache_bytes,
        latent=latent if any(isinstance(layer.attention, LatentAttention) for layer in layers) else None,
        routing="uniform" if any(isinstance(layer.mlp, MoeMlp) for layer in layers) else None,
    )


def _attention_s(layout: ServedLayout, tokens: int) -> float:
    """Of a prompt of so many tokens, the attention alone."""
    return _sum_s(layout, (op for op in _ops(layout, "prefill", 1, tokens) if op.name == ATTENTION)) / layout.tp


def _pass_s(layout: ServedLayout, phase: str, batch: int, own: int, sequence: int) -> tuple[float, float]:
    """What a group of GPUs does with its own requests, and the experts, which all GPUs have for all requests."""
    own_ops = [op for op in _ops(layout, phase, own, sequence) if not op.name.startswith(EXPERTS)]
    if phase == "decode":  # attention is another matter: it reads what this GPU keeps of the caches
        own_ops = [op for op in own_ops if op.name != ATTENTION]
    shared_ops = [op for op in _ops(layout, phase, batch, sequence) if op.name.startswith(EXPERTS)]
    return _sum_s(layout, own_ops) / layout.tp, _sum_s(layout, shared_ops) / layout.stage_gpus


def _cached_s(layout: ServedLayout, batch: int, tokens: int, checked: int) -> float:
    """Attention of one GPU over caches of so many tokens, in all layers."""
    part, element = layout.part, layout.cache_bytes
    peak, seconds = _peaks(part, layout.weights), 0.0
    for layer, count in layout.model.groups:
        window = layer.attention.window if isinstance(layer.attention, Attention) else None
        read = batch * min(tokens, window or tokens)
        whole, kept = (
            read * kv_cache.layer_bytes_per_token(layer.attention, bytes_per_element=element, tp=tp)
            for tp in (1, layout.tp)
        )
        ops = layer_ops(
            layer, hidden=layout.model.hidden, rotary=layout.model.rotary, step=_step(layout, batch, tokens)
        )
        for op in (op for op in ops if op.name == ATTENTION):
            moved = max(0.0, op.work.moved_bytes - whole) / layout.tp + kept / layout.dcp
            work = roofline.Work(flops=checked * op.work.flops / layout.tp, moved_bytes=moved)
            bound = roofline.time(work, peak_flops_per_s=peak(op), memory_bytes_per_s=part["memory_bytes_per_s"])
            seconds += count * op.count * bound.lower_bound_s
    return seconds


def _sum_s(layout: ServedLayout, ops: Iterable[Op]) -> float:
    peak, bandwidth = _peaks(layout.part, layout.weights), layout.part["memory_bytes_per_s"]
    bounds = (
        (op.count, roofline.time(op.work, peak_flops_per_s=peak(op), memory_bytes_per_s=bandwidth))
        for op in ops
        if op.unit == MATRIX
    )
    return sum(count * bound.lower_bound_s for count, bound in bounds)


def _peaks(part: Part, weights: str) -> Callable[[Op], float]:
    """Products run at their format's peak where the part has one, else in 16 bits (or 32), as attention and head do."""
    wide = part.peak_flops_per_s(next((name for name in WIDE_PEAKS if name in part.peaks), WIDE_FORMAT))
    own = dtypes.peak_format(weights) if weights in dtypes.BITS else WIDE_FORMAT
    narrow = part.peak_flops_per_s(own) if own in part.peaks else wide
    return lambda op: wide if op.name in (ATTENTION, "head") else narrow
