"""Layer times: what one layer takes on one GPU of a served model, by kernels that others timed.

>>> from threeloops.models import catalogue
>>> layer, _ = catalogue.model("llama-3-70b").groups[0]
>>> took = [attention_decode_s(layer, 4, "h200-sxm", requests, 4096, "fp8", "fp8") for requests in (1, 64)]
>>> 2 * took[0] < took[1]
True

Source: operations/expected_times.py, facts/engine_exchanges.py, training_loop/network/measured_collectives.py and
        operations/recorded_rates.py (kernels)
"""

from typing import Any

from threeloops import checks, dtypes
from threeloops.facts import hardware
from threeloops.facts.engine_exchanges import engine_all_reduce_s
from threeloops.models.architecture import Attention, LatentAttention, Layer, Model, MoeMlp
from threeloops.models.forward_step import VECTOR, ForwardStep
from threeloops.models.recurrent_layers import DeltaState, StateSpace
from threeloops.models.transformer import layer_ops
from threeloops.operations.expected_times import CACHE as LATENT_CACHE
from threeloops.operations.expected_times import (
    expected_decode,
    expected_experts,
    expected_latent,
    expected_prefill,
    expected_product,
)
from threeloops.operations.latent_module import HIDDEN
from threeloops.operations.recorded_rates import copy_share, small_kernel_s
from threeloops.product_loop.expected.rank_memory import (
    BESIDE,
    HEAD_FORMAT,
    LATENT_FORMATS,
    ROUTED,
    ServedCut,
    always_products,
    has_latents,
    rank_heads,
    rank_token_bytes,
    within_window,
)
from threeloops.training_loop.network.measured_collectives import expected_collective
from threeloops.training_loop.parallelism.rank_layers import rank_layer

ACTIVATIONS = "bf16"
IN_A_NORM = "residual"  # an engine adds the residual in the norm that follows
IN_A_BLOCK = ("latent_", "rotary")  # of latent attention, which was timed with them and with its cache's writing
IN_THE_EXPERTS = "expert_"  # gathering, activation and adding up are in the experts' measured time
CACHE_WRITES = 1  # kernels a layer that put the new keys and values into the cache


def measured_layer(model: Model, layer: Layer, cut: ServedCut) -> Layer:
    """The layer, if its kernels were timed and it can be cut so.

    Raises:   ValueError otherwise
    """
    attention, mlp = layer.attention, layer.mlp
    if isinstance(attention, DeltaState | StateSpace):
        raise ValueError(
            f"{model.name} has recurrent layers: what such a layer takes for one new token stands in no table that is"
            " read here, only scans over prompts do; expected served times are for layers of attention"
        )
    if not isinstance(attention, Attention | LatentAttention) or (isinstance(mlp, MoeMlp) and mlp.latent):
        raise ValueError(f"{model.name}: only attention with keys and values, or with latents, has measured kernels")
    if has_latents(layer) and model.hidden != HIDDEN:
        raise ValueError(f"{model.name}: of latent attention only blocks of DeepSeek-V3's width were timed")
    if attention.num_heads % cut.tp:
        raise ValueError(f"tp={cut.tp} does not divide the {attention.num_heads} heads of {model.name}")
    whole = "tp" if cut.dp == 1 else "tp * dp"
    checks.divides(part="ep", part_value=cut.ep, whole=whole, whole_value=cut.gpus)
    return layer


def _latent_s(layer: Layer, tp: int, phase: str, part: str, batch: int, tokens: int, cache: str, format: str) -> float:
    checks.one_of((LATENT_CACHE,), cache=cache)
    checks.one_of(LATENT_FORMATS, format=format)
    sizes = {"batch": batch, "num_heads": layer.attending.num_heads // tp, "tokens": tokens}
    return expected_latent(part, phase=phase, **sizes, format=LATENT_FORMATS[format]).seconds


def attention_decode_s(layer: Layer, tp: int, part: str, requests: int, context: int, cache: str, format: str) -> float:
    """Attention of a token for each request over caches of so many; of latent layers the whole block."""
    if has_latents(layer):
        return _latent_s(layer, tp, "decode", part, requests, context, cache, format)
    tokens = within_window(layer, context)
    return expected_decode(part, **rank_heads(layer, tp), batch=requests, tokens=tokens, cache=cache).seconds


def attention_prefill_s(layer: Layer, tp: int, part: str, tokens: int, cache: str, format: str) -> float:
    """A windowed layer's prompt is cut into as many of two windows as are whole, and the rest in proportion."""
    if has_latents(layer):
        return _latent_s(layer, tp, "prefill", part, 1, tokens, cache, format)
    short = within_window(layer, tokens, windows=2)
    whole = tokens // short
    whole_s = expected_prefill(part, **rank_heads(layer, tp), batch=whole, tokens=short, cache=cache).seconds
    return whole_s * tokens / (whole * short)


def plain_product_s(part: str, rows: int, columns: float, inner: float, format: str) -> float:
    """One product, whose sizes on a GPU need not be whole."""
    return expected_product(part, m=rows, n=round(columns), k=round(inner), format=format).seconds


def layer_products_s(model: Model, layer: Layer, rows: int, part: str, format: str, cut: ServedCut) -> float:
    """Of one layer: its products and its router, over a group's own rows."""
    plain, made = BESIDE.get(format, format), always_products(layer, model.hidden, rows, cut.tp)
    seconds = sum(plain_product_s(part, rows, one.columns, one.inner, plain) for one in made)
    if not isinstance(layer.mlp, MoeMlp):
        return seconds
    return seconds + plain_product_s(part, rows, layer.mlp.num_experts, model.hidden, HEAD_FORMAT)


def layer_experts_s(model: Model, layer: Layer, rows: int, part: str, format: str, cut: ServedCut) -> float:
    """Of one layer: its experts, over the rows of all groups."""
    moe = layer.mlp
    if not isinstance(moe, MoeMlp):
        return 0.0
    width = moe.expert.intermediate * cut.ep // cut.gpus
    choice = {"num_experts": moe.num_experts, "top_k": moe.top_k, "intermediate": width, "ep": cut.ep}
    narrow = ROUTED.get(format, format)
    return expected_experts(part, tokens=rows, hidden=model.hidden, format=narrow, **choice).seconds


def layer_exchanges_s(model: Model, layer: Layer, part: str, cut: ServedCut, rows: int, own: int, engine: str) -> float:
    """Of one layer: the outputs of both its halves are added up over the GPUs, and where a norm spans the heads of all
    of them, the mean squares of queries and keys in fp32. Source: vLLM, model_executor/layers/minimax_rms_norm.py.
    Where groups have `own` of the rows, experts get all of them, and give each its own back. Source: vLLM,
    distributed/device_communicators/all2all.py (allgather_reducescatter, its default)
    """
    row_bytes = model.hidden * dtypes.bytes_per_element(ACTIVATIONS)
    wide, squares = own * row_bytes, own * 2 * dtypes.bytes_per_element("fp32")
    spans = isinstance(layer.attention, Attention) and layer.attention.qk_norm_spans_heads
    apart = cut.dp > 1 and isinstance(layer.mlp, MoeMlp)
    sizes = (wide, *(() if apart else (wide,)), *((squares,) if spans else ()))
    seconds = 0.0
    if cut.tp > 1:
        seconds = sum(engine_all_reduce_s(part, engine=engine, ranks=cut.tp, size_bytes=size) for size in sizes)
    if not apart:
        return seconds
    halves = ("all_gather", "reduce_scatter")
    return seconds + sum(
        expected_collective(part, op=op, ranks=cut.gpus, size_bytes=rows * row_bytes).seconds for op in halves
    )


def small_kernels_s(model: Model, layer: Layer, tp: int, part: str, phase: str, tokens: int, cache: str) -> float:
    """Norms, rotation, activation and the write into the cache of one layer, for the new tokens."""
    element = dtypes.bytes_per_element(ACTIVATIONS)
    batch, sequence = (tokens, 1) if phase == "decode" else (1, tokens)
    counted: dict[str, Any] = {"causal": "half", "fused_attention": True, "logits": "last"}
    counted |= {"routing": "uniform"} if isinstance(layer.mlp, MoeMlp) else {}
    counted |= {"latent": "absorbed"} if has_latents(layer) else {}
    step = ForwardStep(phase=phase, batch=batch, sequence=sequence, bytes_per_element=element, **counted)
    ops = layer_ops(rank_layer(layer, tp), hidden=model.hidden, rotary=model.rotary, step=step)
    block = has_latents(layer)
    counted_there = (IN_THE_EXPERTS, *(IN_A_BLOCK if block else ()))
    small = [op for op in ops if op.unit == VECTOR and not op.name.startswith(counted_there)]
    written = 0.0 if block else 2 * tokens * rank_token_bytes(layer, tp, cache)
    moved = sum(op.count * op.work.moved_bytes for op in small) + written
    kernels = sum(op.count for op in small if IN_A_NORM not in op.name) + (0 if block else CACHE_WRITES)
    rate = hardware.part(part)["memory_bytes_per_s"] * copy_share()
    return kernels * small_kernel_s() + moved / rate
