"""Thirteen techniques: what each does, to speed and to memory, how complex it is and when it pays.

Words stand here and figures in `figures`: a name in braces is computed when the sheet is made, and a test refuses a
figure that is typed.
"""

from collections.abc import Callable
from typing import Any

from threeloops.driving import stage_work
from threeloops.facts import frame_rates, hardware
from threeloops.inner_loop import attention_io, fusion, launches
from threeloops.inner_loop.block_formats import BlockFormat
from threeloops.models import model_flops
from threeloops.models.parameters import model_parameters
from threeloops.operations import attention
from threeloops.product_loop import kv_allocators, kv_cache, serving, speculative
from threeloops.sheets import figures
from threeloops.sheets.layout import Table
from threeloops.training_loop.memory import activations, in_flight, rank_states
from threeloops.training_loop.network import traffic
from threeloops.training_loop.updates import optimisers

# Technique, what it does, what that does to speed, to memory, how complex it is, when it pays. Every factor says what
# it is measured against.
TECHNIQUES = (
    (
        "BF16 mixed precision",
        "matmuls take BF16 and add in FP32; a master copy of the weights stays in FP32",
        "up to {bf16_speed} over TF32 where arithmetic binds",
        (
            "activations kept in BF16 halve, those in FP32 do not; states stay: {states} a parameter, {states_fp32} in"
            " plain FP32"
        ),
        "a flag",
        "always; no loss scaling, unlike FP16",
    ),
    (
        "Recomputing activations",
        "keeps each layer's input alone and runs the layer again in the backward pass",
        "a training step of {again} the time, so {again_speed} the speed",
        "activations of a Llama 2 7B layer at {tokens} tokens: {kept} down to {kept_full}, {kept_less} less",
        "a line per layer",
        "activations do not fit; first the attention core alone",
    ),
    (
        "FlashAttention",
        "works through the scores in tiles on the chip, with a running maximum; exact",
        (
            "up to {flash_speed} at {tokens} tokens on an H100: unfused, the scores cross the memory four times,"
            " {scores_s} a head; the arithmetic takes {attention_s}"
        ),
        "{scores} of scores per head at {tokens} tokens never exist; {statistics} per head are kept besides the output",
        "a library call",
        "always",
    ),
    (
        "Fusing kernels, torch.compile",
        "one kernel does several operations on a value while it is on the chip",
        "three elementwise kernels in a row: {fused} less traffic as one, and as much faster where memory binds",
        "what lies between them is never stored",
        "compile time, and again for each new shape",
        "many small operations on large tensors",
    ),
    (
        "Fused optimiser",
        "one kernel updates weights and both moments, and reads and writes each of them once",
        "AdamW on Llama 2 7B in FP32: {adam_s} on an H100, {adam_less} less traffic than with a kernel per operation",
        "no copies between the operations",
        "a flag",
        "always; most where batches are small",
    ),
    (
        "Data parallelism, DDP",
        "each GPU holds the whole model and works on its own part of the batch; gradients are averaged",
        "at most as many times as there are GPUs; each sends {ddp_sent} a step, Llama 2 7B on {gpus}",
        "none saved: every GPU has all states",
        "a wrapper and a launcher",
        "the model fits on one GPU",
    ),
    (
        "ZeRO-3, FSDP",
        "each GPU stores a share of all states; a layer's weights are gathered while it runs",
        "{sharding_traffic} the traffic of data parallelism: free while arithmetic hides it, slower on thin links",
        "states of Llama 2 7B: {states_model} become {states_shared} on each of {gpus}; activations stay whole",
        "a wrapper",
        "states do not fit on one GPU",
    ),
    (
        "Engines, TensorRT",
        "builds a trained network for one GPU: layers fused, a kernel chosen for each by timing, memory laid out",
        "published in FP32, over PyTorch: {engine_least} for the large and {engine_most} for the small of two networks",
        "buffers are planned in advance; weights in the network's types",
        "export, plugins, a build for each GPU",
        "inference on GPUs by NVIDIA, and where shapes seldom change",
    ),
    (
        "INT8 weights and activations",
        "both become integers with a scale, and integer tensor cores multiply them",
        "up to {int8_speed} over BF16 where arithmetic binds",
        "{int8_smaller} smaller than BF16 ({int8_fp32} than FP32)",
        "calibration, outliers",
        "serving, if accuracy holds",
    ),
    (
        "INT4 weights, groups of {group}",
        "stores weights as INT4 with a scale per group, and widens them in the kernel",
        "one user's token, Llama 3 8B on an H100: {token_floor} becomes {int4_floor} at least",
        "{int4_bits} bits with the scales: {int4_smaller} smaller than BF16 ({int4_fp32} than FP32)",
        "calibration, and kernels that unpack",
        "weights bind: small batches, small devices",
    ),
    (
        "Structured pruning",
        "removes whole channels, or two of every four weights, and trains on",
        (
            "half of all channels: {pruned_less} less arithmetic in a convolution; two of four weights: {sparse_speed}"
            " on Orin's DLAs, published"
        ),
        "weights and activations shrink with the channels",
        "training again; which to remove is a search",
        "the network is larger than its task",
    ),
    (
        "Distillation",
        "trains a small model on the outputs of a large one",
        "one user's token reads {student_less} fewer weights: Llama 3.2 3B instead of Llama 3 8B",
        "as much less",
        "a training run with the large model in it",
        "the task is narrower than what the large model can",
    ),
    (
        "Paged cache, continuous batching",
        "hands out the cache in blocks as it grows; a request joins or leaves the batch at any step",
        "reported: 2–4× over tuned servers at equal latency (the paper), up to 24× over plain Transformers (the blog)",
        "less than a block of {block} tokens unused per request: {spare}, Llama 3 8B",
        "a serving engine",
        "any shared server",
    ),
)
MORE = (  # what lists of thirteen leave out
    (
        "CUDA graphs",
        "records a step's launches once and sends them with one call",
        "hides what launches cost: {kernels} of {launch} are {launching_s} a layer",
        "its buffers stay reserved",
        "fixed shapes and addresses",
        "decode; kernels that move less than {hidden_bytes}, H100",
    ),
    (
        "Tensor parallelism",
        "each GPU multiplies by its share of every matrix; results are added up",
        (
            "four all-reduces per layer and step: each GPU sends {tensor_sent} a layer, {tensor_step} a step, Llama 2"
            " 7B, {tokens} tokens on {gpus}"
        ),
        "weights, states and caches divided by the GPUs",
        "the layers are rewritten",
        "inside a node, where links are {network_slower} those outside",
    ),
    (
        "Pipeline parallelism",
        "each GPU holds layers in a row; micro-batches pass from one to the next",
        "idle for (p - 1) / (m + p - 1) of the time, {idle}: p = {stages} stages, m = {micro_batches} micro-batches",
        "weights divided by p; the first of {stages} stages still keeps {in_flight} of {micro_batches} micro-batches",
        "a schedule to get right",
        "between nodes: it sends the least",
    ),
    (
        "Grouped-query attention",
        "several query heads share one key and value head",
        "{users} users of {tokens} tokens: {gqa_speed} the tokens/s, where a KV head per query head would fit at all",
        "cache of Llama 3 8B {kv_shared} smaller than with a KV head per query head",
        "decided when the model is trained",
        "always, in new models",
    ),
    (
        "Speculative decoding",
        "a small model drafts tokens, the large one checks them in one pass; same distribution",
        (
            "{checked} tokens per check if {accepted} are accepted, {drafted} drafted: {drafting} if a draft token"
            " costs {draft_cost}"
        ),
        "more: the second model's weights, {draft_cost} of the large one's, and its cache",
        "a draft model that fits",
        "small batches; {drafting_full} the speed where arithmetic binds",
    ),
)
EXAMPLES = (
    "Examples, put in your own: {tokens} tokens, {gpus} GPUs, {launch} a launch, {accepted} of the drafted tokens"
    " accepted, a draft token at {draft_cost} of a step."
)
Function = Callable[..., Any]
# What works out the figures of each technique, in the same order.
FROM: tuple[tuple[Function, ...], ...] = (
    (hardware.part, rank_states.model_states),
    (model_flops.training_flops, activations.per_layer),
    (attention_io.score_matrix_bytes, attention_io.row_statistics_bytes, attention.attention),
    (fusion.separate_bytes, fusion.fused_bytes),
    (optimisers.update_bytes,),
    (traffic.data_parallel_traffic,),
    (traffic.data_parallel_traffic, rank_states.model_states),
    (),  # published
    (hardware.part,),
    (BlockFormat, serving.decode_step_s),
    (stage_work.convolutions, frame_rates.frame_rate),
    (model_parameters,),
    (kv_allocators.by_name,),
)
FROM_MORE: tuple[tuple[Function, ...], ...] = (
    (launches.break_even_bytes,),
    (traffic.tensor_parallel_traffic,),
    (in_flight.micro_batches_in_flight,),
    (kv_cache.kv_bytes_per_token, serving.decode_step_s),
    (speculative.tokens_per_check, speculative.speedup, speculative.batch_speedup),
)
HEAD = ("technique", "what it does", "speed", "memory", "complexity", "when it pays")


def table() -> Table:
    """The thirteen, and below them what is only an example."""
    ((examples,),) = figures.filled(((EXAMPLES,),))
    return Table(
        title="Thirteen techniques",
        head=HEAD,
        rows=figures.filled(TECHNIQUES),
        note=examples,
    )


def more() -> Table:
    """Five that divide a model, shorten a decode or hide launches, and that the usual list leaves out."""
    return Table(title="Five more techniques", head=HEAD, rows=figures.filled(MORE))


def worked_out_by() -> str:
    """The functions behind the figures, in the order of the techniques."""
    functions = dict.fromkeys(called(function) for row in (*FROM, *FROM_MORE) for function in row)
    return f"Techniques: worked out by {', '.join(functions)}"


def called(function: Function) -> str:
    """A function as one would import it.

    >>> called(speculative.speedup)
    'speculative.speedup'
    """
    return f"{function.__module__.rpartition('.')[2]}.{function.__name__}"


def factors() -> dict[str, tuple[float, float]]:
    """Technique and what it shrinks -> (times faster, times less memory of that), where both are worked out.

    All against the same device without the technique, each where it helps most: where arithmetic binds (BF16, INT8),
    where what is read binds (INT4, shared KV heads). What divides a model among devices has another baseline.
    """
    return figures.factors()
