"""Thirteen techniques: what each does to speed and memory, how complex it is, when to use it, and what worked it out.

Words stand here and figures in `figures`: a name in braces is computed when the sheet is made, and a test refuses a
figure that is typed.
"""

from collections.abc import Callable
from typing import Any

from threeloops.facts import hardware
from threeloops.inner_loop import attention_io, fusion, launches
from threeloops.inner_loop.block_formats import BlockFormat
from threeloops.models import model_flops
from threeloops.product_loop import kv_allocators, kv_cache, speculative
from threeloops.sheets import figures
from threeloops.sheets.layout import Table
from threeloops.training_loop.memory import activations, in_flight, rank_states
from threeloops.training_loop.network import traffic

# Technique, what it does to speed, to memory, how complex it is, when. Every factor says what it is measured
# against.
TECHNIQUES = (
    (
        "BF16 mixed precision",
        "up to {bf16_speed} over TF32 where arithmetic binds",
        (
            "tensors kept for the backward pass in BF16 halve, those kept in FP32 do not; states stay: {states} a"
            " parameter, {states_fp32} in plain FP32"
        ),
        "a flag",
        "always; no loss scaling, unlike FP16",
    ),
    (
        "Recomputing activations",
        "a training step of {again} the time, so {again_speed} the speed",
        "one Llama 2 7B layer at {tokens} tokens: {kept} down to {kept_full}",
        "a line per layer",
        "activations do not fit; first the attention core alone",
    ),
    (
        "FlashAttention",
        "as much faster as unfused attention is bound by memory",
        "{scores} of scores per head at {tokens} tokens never exist; {statistics} per head are kept besides the output",
        "a library call",
        "always",
    ),
    (
        "Fusing kernels, torch.compile",
        "three elementwise kernels in a row: {fused} less traffic as one",
        "what lies between them is never stored",
        "compile time, and again for each new shape",
        "many small operations on large tensors",
    ),
    (
        "CUDA graphs",
        "hides what launches cost: {kernels} of {launch} are {launching_s} a layer",
        "its buffers stay reserved",
        "fixed shapes and addresses",
        "decode steps; kernels that move less than {hidden_bytes} on an H100",
    ),
    (
        "ZeRO-3, FSDP",
        "slower on thin links: {sharding_traffic} the traffic of data parallelism",
        "states of Llama 2 7B: {states_model} become {states_shared} on each of {gpus}; activations stay whole",
        "a wrapper",
        "states do not fit on one GPU",
    ),
    (
        "Tensor parallelism",
        "four all-reduces per layer and step: {tensor_sent} from each GPU, Llama 2 7B, {tokens} tokens on {gpus}",
        "weights, states and caches divided by the GPUs",
        "the layers are rewritten",
        "inside a node, where links are {network_slower} those outside",
    ),
    (
        "Pipeline parallelism",
        "idle for (p - 1) / (m + p - 1) of the time, p stages, m micro-batches",
        "weights divided by p; the first of {stages} stages still keeps {in_flight} of {micro_batches} micro-batches",
        "a schedule to get right",
        "between nodes: it sends the least",
    ),
    (
        "INT8 weights and activations",
        "up to {int8_speed} over BF16 where arithmetic binds",
        "{int8_smaller} smaller than BF16 ({int8_fp32} than FP32)",
        "calibration, outliers",
        "serving, if accuracy holds",
    ),
    (
        "INT4 weights, groups of {group}",
        "decode at small batch up to as much faster as the weights are smaller",
        "{int4_bits} bits with the scales: {int4_smaller} smaller than BF16 ({int4_fp32} than FP32)",
        "calibration, and kernels that unpack",
        "weights bind: small batches, small devices",
    ),
    (
        "Grouped-query attention",
        "larger batches, and less cache to read at each step",
        "cache of Llama 3 8B {kv_shared} smaller than with a KV head per query head",
        "decided when the model is trained",
        "always, in new models",
    ),
    (
        "Paged cache, continuous batching",
        "reported: 2–4× over tuned servers at equal latency (the paper), up to 24× over plain Transformers (the blog)",
        "less than a block of {block} tokens unused per request: {spare}, Llama 3 8B",
        "a serving engine",
        "any shared server",
    ),
    (
        "Speculative decoding",
        (
            "{checked} tokens per check if {accepted} are accepted, {drafted} drafted: {drafting} if a draft token"
            " costs {draft_cost}"
        ),
        "a second model and its cache",
        "a draft model that fits",
        "small batches; a full batch has no arithmetic to spare",
    ),
)
Function = Callable[..., Any]
# What works out the figures of each technique, in the same order.
FROM: tuple[tuple[Function, ...], ...] = (
    (hardware.part, rank_states.model_states),
    (model_flops.training_flops, activations.per_layer),
    (attention_io.score_matrix_bytes, attention_io.row_statistics_bytes),
    (fusion.separate_bytes, fusion.fused_bytes),
    (launches.break_even_bytes,),
    (traffic.data_parallel_traffic, rank_states.model_states),
    (traffic.tensor_parallel_traffic,),
    (in_flight.micro_batches_in_flight,),
    (hardware.part,),
    (BlockFormat,),
    (kv_cache.layer_bytes_per_token,),
    (kv_allocators.by_name,),
    (speculative.tokens_per_check, speculative.speedup),
)


def table() -> Table:
    """The thirteen, with what worked out their figures."""
    rows = figures.filled(TECHNIQUES)
    return Table(
        title="Thirteen techniques",
        head=("technique", "speed", "memory", "complexity", "when", "worked out by"),
        rows=tuple((*row, ", ".join(map(called, functions))) for row, functions in zip(rows, FROM, strict=True)),
    )


def called(function: Function) -> str:
    """A function as one would import it.

    >>> called(speculative.speedup)
    'speculative.speedup'
    """
    return f"{function.__module__.rpartition('.')[2]}.{function.__name__}"


def factors() -> dict[str, tuple[float, float]]:
    """Technique -> (times faster, times less memory of what it shrinks), where both are worked out; each at its best.

    Faster is on paper: where arithmetic binds (BF16, INT8), where what is read binds (INT4, shared KV heads), where
    links cost nothing (ZeRO-3, tensor parallelism). Memory is that of what the technique shrinks, not of everything.
    """
    return figures.factors()
