"""Wide decode: a decode step of DeepSeek-V3 on many GPUs, from measured kernels and printed rates of the exchange.

Nothing in it is fitted to a deployment. Attention is data-parallel: each GPU has requests of its own, and all heads.

>>> pool = WidePool(part="h100-sxm5", ranks=128, slots_per_rank=2, exchange_bytes_per_s=(39e9, 39e9))
>>> half, whole = layer_times(pool, requests=64, context=4096), layer_times(pool, requests=128, context=4096)
>>> f"{half.attention_s * 1e6:.0f} µs of attention, {half.exchanging_s * 1e6:.0f} µs of exchange for 64 requests a GPU"
'313 µs of attention, 285 µs of exchange for 64 requests a GPU'
>>> f"{decode_tokens_per_s(pool, requests=128, context=4096) * 8:,.0f} tokens/s from a node"
'19,283 tokens/s from a node'

Source: operations/expected_times.py (kernels); DeepSeek-AI, DeepEP, docs/legacy.md, 2025 (rates of the exchange)
"""

from dataclasses import dataclass

from threeloops import checks
from threeloops.models import catalogue
from threeloops.models.architecture import LatentAttention, MoeMlp
from threeloops.operations.expected_times import expected_latent, expected_product
from threeloops.product_loop.experts.exchange_bytes import vector_bytes
from threeloops.product_loop.experts.two_batches import LayerTimes, hidden_s

MODEL = "deepseek-v3"  # its blocks were timed, and no others
FORMAT = "fp8"
SCALED = {"elements_per_scale": 128, "scale_bytes": 4, "header_bytes": 16}  # DeepEP's dispatch


@dataclass(frozen=True, slots=True, kw_only=True)
class WidePool:
    """GPUs that decode together."""

    part: str
    ranks: int
    slots_per_rank: int  # routed experts on each, copies included
    exchange_bytes_per_s: tuple[float, float]  # dispatch and combine: bytes of all copies over the time

    def __post_init__(self) -> None:
        checks.count(ranks=self.ranks, slots_per_rank=self.slots_per_rank)
        checks.positive(dispatch_bytes_per_s=self.exchange_bytes_per_s[0])
        checks.positive(combine_bytes_per_s=self.exchange_bytes_per_s[1])


def layer_times(pool: WidePool, *, requests: int, context: int) -> LayerTimes:
    """Seconds of a layer with experts for so many requests of each GPU.

    Formula:  attention: expected_latent with all heads; experts: for each slot two products of requests * top_k /
              slots_per_rank tokens, for the shared expert two of `requests`; exchange: requests * top_k *
              vector_bytes / rate
    Units:    context: tokens in the cache of a request
    Assumes:  even load, one expert after the other; the rate of the exchange for 128 tokens, also for fewer; no time
              of small kernels, of the host, of sampling
    Raises:   ValueError for a part whose kernels were not measured
    Counted:  tests.product_loop.experts.test_wide_decode.test_a_layer_adds_up_from_its_kernels
    """
    checks.count(requests=requests, context=context)
    model = catalogue.model(MODEL)
    attention, moe = _shape()
    sent = (
        vector_bytes(model.hidden, bits=8, **SCALED),
        vector_bytes(model.hidden, bits=16),
    )
    there_s, back_s = (
        requests * moe.top_k * size / rate for size, rate in zip(sent, pool.exchange_bytes_per_s, strict=True)
    )
    wide = moe.expert.intermediate
    rows = max(1, round(requests * moe.top_k / pool.slots_per_rank))
    routed_s = pool.slots_per_rank * _expert_s(pool.part, rows, model.hidden, wide)
    return LayerTimes(
        attention_s=expected_latent(
            pool.part,
            phase="decode",
            batch=requests,
            num_heads=attention.num_heads,
            tokens=context,
            format=FORMAT,
        ).seconds,
        dispatch_s=there_s,
        experts_s=routed_s + _expert_s(pool.part, requests, model.hidden, wide),
        combine_s=back_s,
    )


def decode_tokens_per_s(pool: WidePool, *, requests: int, context: int) -> float:
    """Tokens per second of one GPU with two halves of its requests in turn.

    Formula:  requests / (layers * hidden_s of layer_times of half of the requests)
    Assumes:  as layer_times and hidden_s; layers without experts take as long as the others
    Raises:   ValueError for an odd number of requests
    Measured: tests.product_loop.experts.test_wide_decode.test_published_pools_give_about_what_is_expected
    """
    checks.divides(part="halves", part_value=2, whole="requests", whole_value=requests)
    half = layer_times(pool, requests=requests // 2, context=context)
    return requests / (catalogue.model(MODEL).num_layers * hidden_s(half))


def _shape() -> tuple[LatentAttention, MoeMlp]:
    """Attention and experts of the layers that have them."""
    layer = catalogue.model(MODEL).groups[-1][0]
    assert isinstance(layer.attention, LatentAttention)
    assert isinstance(layer.mlp, MoeMlp)
    return layer.attention, layer.mlp


def _expert_s(part: str, rows: int, hidden: int, wide: int) -> float:
    """An expert's products: gate and up in one, and down."""
    into = expected_product(part, m=rows, n=2 * wide, k=hidden, format=FORMAT)
    return into.seconds + expected_product(part, m=rows, n=hidden, k=wide, format=FORMAT).seconds
