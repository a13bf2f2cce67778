"""Rank memory: what one GPU of a tensor group holds of a served model and reads in a step, and how many requests have a
seat beside the weights.

>>> from threeloops.models import catalogue
>>> llama = catalogue.model("llama-3-70b")
>>> f"{rank_weight_bytes(llama, tp=4, format='fp8') / 1e9:.1f} GB on each of four GPUs"
'18.2 GB on each of four GPUs'
"""

from dataclasses import dataclass

from threeloops import checks, dtypes
from threeloops.facts import hardware
from threeloops.models.architecture import Attention, LatentAttention, Layer, Model, MoeMlp
from threeloops.operations import latent_module
from threeloops.operations.expert_layers import experts_touched
from threeloops.training_loop.parallelism.product_rates import Product, feeding_products, layer_products

HEAD_FORMAT = "bf16"
MEMORY_SHARE = 0.9  # vLLM's gpu_memory_utilization, unless it is set; the others leave about as much
# Of latent attention's projections, which were timed in no narrower format than fp8.
LATENT_FORMATS = {"bf16": "bf16", "fp8": "fp8", "fp8-block": "fp8", "nvfp4": "bf16"}
ROUTED = {"fp8-block": "fp8"}  # experts in fp8 were timed in blocks, and are called fp8
BESIDE = {"mxfp4": "bf16"}  # the format of all other weights, where experts alone are quantised (gpt-oss)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedCut:
    """How GPUs share a model: dp groups of tp have requests of their own, with all but the experts on each group; those
    are cut over all GPUs, of which ep groups hold different ones.
    """

    tp: int
    ep: int = 1
    dp: int = 1

    @property
    def gpus(self) -> int:
        return self.tp * self.dp


def key_value_attention(layer: Layer) -> Attention:
    """The layer's attention, if it keeps keys and values.

    Raises:   ValueError for a latent or a recurrent state in their place
    """
    layer.refuse_unusual()
    if not isinstance(layer.attention, Attention):
        raise ValueError("only layers with keys and values of heads have measured kernels here")
    return layer.attention


def has_latents(layer: Layer) -> bool:
    """Whether the layer keeps the latents of DeepSeek-V3, whose blocks were timed.

    Raises:   ValueError for latents of other widths, and where an indexer chooses among them
    """
    one = layer.attention
    if not isinstance(one, LatentAttention):
        return False
    widths = (one.q_rank, one.kv_rank, one.nope_head_dim, one.rope_head_dim, one.value_head_dim)
    timed = (latent_module.QUERY_RANK, latent_module.KV_RANK, latent_module.PLAIN, latent_module.ROTATED)
    if widths != (*timed, latent_module.VALUE) or one.indexer:
        raise ValueError("of latent attention no other widths than DeepSeek-V3's are timed, nor an indexer")
    return True


def rank_latent_bytes(layer: Layer, tp: int, format: str) -> float:
    """The weights of a latent-attention block on one GPU; 0 where keys and values are kept.

    Raises:   ValueError for a format in which nobody serves them
    """
    if not has_latents(layer):
        return 0.0
    checks.one_of(LATENT_FORMATS, format=format)
    width = dtypes.bytes_per_element(LATENT_FORMATS[format])
    return latent_module.latent_weights(layer.attending.num_heads // tp) * width


def rank_heads(layer: Layer, tp: int) -> dict[str, int]:
    """Query heads, KV heads and their width on one GPU; where there are more GPUs than KV heads, each has a copy."""
    one = key_value_attention(layer)
    kv_heads = max(1, one.num_kv_heads // tp)
    return {"num_heads": one.num_heads // tp, "num_kv_heads": kv_heads, "head_dim": one.head_dim}


def rank_token_bytes(layer: Layer, tp: int, cache: str) -> float:
    """Keys and values, or the latent, of one token in a layer, on one GPU."""
    if has_latents(layer):  # one for all heads, so that each GPU has it whole
        return latent_module.WIDTH * dtypes.bytes_per_element(cache)
    one = rank_heads(layer, tp)
    return 2 * one["num_kv_heads"] * one["head_dim"] * dtypes.bytes_per_element(cache)


def rank_cache_bytes(layer: Layer, tp: int, cache: str, tokens: int) -> float:
    """Keys and values that one GPU keeps of a request in a layer."""
    return within_window(layer, tokens) * rank_token_bytes(layer, tp, cache)


def within_window(layer: Layer, tokens: int, windows: int = 1) -> int:
    """Of so many tokens those that a window, or several, lets through."""
    window = None if has_latents(layer) else key_value_attention(layer).window
    return min(tokens, windows * window) if window else tokens


def rank_weight_bytes(model: Model, tp: int, format: str, tokens: int | None = None, dp: int = 1) -> float:
    """What one GPU holds of the weights, or reads of them in a step of so many tokens: all but the table of inputs.
    Experts are cut over the tp GPUs of all dp groups, and `tokens` are those of all groups.
    """
    beside = sum(
        count * one.columns * one.inner
        for layer, count in model.groups
        for one in always_products(layer, model.hidden, 1, tp)
    )
    routed = sum(count * _expert_elements(layer, model.hidden, tp * dp, tokens) for layer, count in model.groups)
    head = model.vocab / tp * model.hidden * dtypes.bytes_per_element(HEAD_FORMAT)
    head += head if tokens is None and not model.tied_head else 0.0
    held = beside * dtypes.bytes_per_element(BESIDE.get(format, format)) + routed * dtypes.bytes_per_element(format)
    return held + head + sum(count * rank_latent_bytes(layer, tp, format) for layer, count in model.groups)


def _expert_elements(layer: Layer, hidden: int, gpus: int, tokens: int | None) -> float:
    """A layer's weights of experts on one GPU: all, or those that so many tokens touch."""
    moe = layer.mlp
    if not isinstance(moe, MoeMlp):
        return 0.0
    choice = {"num_experts": moe.num_experts, "top_k": moe.top_k}
    used = moe.num_experts if tokens is None else experts_touched(**choice, tokens=tokens, routing="uniform")
    return used * moe.expert.num_matrices * hidden * moe.expert.intermediate / gpus


def always_products(layer: Layer, hidden: int, rows: int, tp: int) -> list[Product]:
    """The products of a layer that every token takes: all but its experts' and those of a latent block."""
    of_a_layer = feeding_products if has_latents(layer) else layer_products
    made = of_a_layer(layer, hidden=hidden, rows=rows, tp=tp, ep=1)
    return [one for one in made if one.groups == 1]


def seats(model: Model, *, part: str, format: str, cache: str, tp: int, tokens: int, dp: int = 1) -> int:
    """How many requests of so many tokens the caches of tp GPUs hold, or of dp such groups that share experts; whoever
    comes later waits for a first token.

    Formula:  dp * (MEMORY_SHARE * capacity - weights of a GPU) / bytes of a request's keys and values on one GPU
    Assumes:  what else lies in memory fits into the tenth that engines leave
    Raises:   ValueError if not even one fits
    Counted:  tests.product_loop.expected.test_rank_memory.test_seats_are_what_the_weights_leave
    Source:   by definition: whole requests in what the weights leave

    >>> from threeloops.models import catalogue
    >>> formats = {"format": "fp8", "cache": "fp8"}
    >>> seats(catalogue.model("llama-3-70b"), part="h200-sxm", **formats, tp=1, tokens=8192)
    46
    """
    checks.count(tp=tp, tokens=tokens, dp=dp)
    free = MEMORY_SHARE * hardware.part(part).capacity_bytes() - rank_weight_bytes(model, tp, format, dp=dp)
    each = sum(count * rank_cache_bytes(layer, tp, cache, tokens) for layer, count in model.groups)
    if free < each:
        raise ValueError(
            f"{model.name} in {format} leaves no room for {tokens} tokens on {tp * dp} of {part}; use more"
        )
    return dp * int(free / each)
