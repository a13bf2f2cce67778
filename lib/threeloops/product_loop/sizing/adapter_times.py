"""Adapter times: what LoRA adapters beside a served model take of a GPU's memory, and of the time of a step.

>>> from threeloops.models import catalogue
>>> llama = catalogue.model("llama-3-8b")
>>> of_one = adapter_bytes(llama, rank=16, tp=1)
>>> f"{of_one / 1e6:.0f} MB for each, {adapter_bytes(llama, rank=16, tp=2) / of_one:.2f} of it on each of two GPUs"
'84 MB for each, 0.68 of it on each of two GPUs'

Source: Hu et al., LoRA, 2021, arXiv:2106.09685, section 4.1 (y = W x + B A x); vLLM, lora/layers/base_linear.py,
        column_parallel_linear.py and row_parallel_linear.py (which half is cut over GPUs, which matrices share a
        kernel), config/lora.py (ranks)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from threeloops import checks, dtypes
from threeloops.facts.hardware import Part
from threeloops.models.architecture import Attention, DenseMlp, Layer, Model
from threeloops.operations import roofline
from threeloops.operations.expected_times import expected_product
from threeloops.operations.recorded_rates import copy_share
from threeloops.product_loop.adapter_batches import distinct_adapters
from threeloops.training_loop.updates.adapters import layer_matrices

FORMAT = "bf16"  # of adapters, however the weights beside them are stored
TOGETHER = (("query", "key", "value"), ("output",), ("gate", "up"), ("down",))  # what engines multiply at once
CUT_INPUTS = ("output", "down")  # of all others the outputs are cut over a tensor group's GPUs
NARROWEST = 64  # no product with fewer columns or inputs was timed
VLLM_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # that vLLM reserves


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedAdapters:
    """LoRA adapters that all lie in the GPUs' memory; every request wants one of them, each as often as any other."""

    number: int
    rank: int  # for which memory is reserved

    def __post_init__(self) -> None:
        checks.count(adapters=self.number, adapter_rank=self.rank)

    def distinct(self, requests: int) -> float:
        """Different ones that so many requests want, on average; as adapter_batches.distinct_adapters."""
        return distinct_adapters(adapters=self.number, batch=requests)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptedProduct:
    """A product of one layer on one GPU, of one or several matrices with the same inputs."""

    matrices: int
    inputs: int
    outputs: int  # of all matrices


def reserved_rank(rank: int, *, engine: str) -> int:
    """The rank for which an engine reserves memory: vLLM knows a few, the others take any.

    Raises:   ValueError for a rank above vLLM's largest

    >>> reserved_rank(12, engine="vLLM"), reserved_rank(12, engine="SGLang")
    (16, 12)
    """
    checks.count(adapter_rank=rank)
    if engine != "vLLM":
        return rank
    if rank > VLLM_RANKS[-1]:
        raise ValueError(f"adapter_rank={rank}: vLLM reserves at most {VLLM_RANKS[-1]}; SGLang takes any rank")
    return next(one for one in VLLM_RANKS if one >= rank)


def adapted_products(layer: Layer, *, hidden: int, tp: int) -> tuple[AdaptedProduct, ...]:
    """The products of a layer that have an adapter, as one of tp GPUs does them.

    Assumes:  adapters beside every matrix of attention and MLP, as engines reserve them whatever an adapter fills;
              where there are more GPUs than KV heads, each has a copy
    Raises:   ValueError for layers with latents, states or experts, whose adapters nobody counts here
    """
    attention = layer.attention
    if not isinstance(attention, Attention) or not isinstance(layer.mlp, DenseMlp):
        raise ValueError(
            "adapters are counted beside ordinary attention and dense MLPs only, and this model has layers with"
            " latents, states or experts; leave --adapters out, and give the bytes of yours with --other"
        )
    shapes = layer_matrices(layer, hidden=hidden)
    narrow = max(1, attention.num_kv_heads // tp) * attention.head_dim
    found = []
    for names in TOGETHER:
        there = [name for name in names if name in shapes]
        inputs = shapes[there[0]][0] // (tp if there[0] in CUT_INPUTS else 1)
        outputs = sum(_outputs(name, shapes[name][1], narrow, tp) for name in there)
        found.append(AdaptedProduct(matrices=len(there), inputs=inputs, outputs=outputs))
    return tuple(found)


def _outputs(name: str, whole: int, narrow: int, tp: int) -> int:
    if name in ("key", "value"):
        return narrow
    return whole if name in CUT_INPUTS else whole // tp


def adapter_bytes(model: Model, *, rank: int, tp: int) -> float:
    """Of one adapter on one of tp GPUs.

    Formula:  sum over matrices of rank * (inputs + outputs) * 2 bytes; outputs / tp, of output and down projections
              inputs / tp: the other half is whole on every GPU
    Raises:   ValueError as adapted_products
    Source:   as the module's; vLLM without --fully-sharded-loras
    Counted:  tests.product_loop.sizing.test_adapter_times.test_bytes_are_those_of_tensors_that_an_engine_would_make
    """
    elements = sum(count * rank * (one.matrices * one.inputs + one.outputs) for one, count in _of_model(model, tp))
    return elements * dtypes.bytes_per_element(FORMAT)


def bound_adapters_s(
    model: Model, part: Part, adapters: ServedAdapters, *, tp: int, tokens: int, requests: int
) -> float:
    """Seconds that no engine beats, for so many tokens of so many requests, beside the model's own products.

    Formula:  sum over products of max(FLOPs / peak, bytes / bandwidth) of A x, and of B (A x); 2 FLOPs a token and
              element of its adapter; every different adapter is read once
    Assumes:  the tokens' own numbers are at hand: they are those of the product beside it
    Raises:   ValueError as adapted_products
    Counted:  tests.product_loop.sizing.test_adapter_times.test_few_tokens_read_adapters_and_many_compute
    """
    checks.count(tokens=tokens, requests=requests)
    distinct, element = adapters.distinct(requests), dtypes.bytes_per_element(FORMAT)
    peak, bandwidth, seconds = part.peak_flops_per_s(FORMAT), part["memory_bytes_per_s"], 0.0
    for one, count in _of_model(model, tp):
        for elements in (one.matrices * one.inputs * adapters.rank, one.outputs * adapters.rank):
            work = roofline.Work(flops=2 * tokens * elements, moved_bytes=distinct * elements * element)
            bound = roofline.time(work, peak_flops_per_s=peak, memory_bytes_per_s=bandwidth)
            seconds += count * bound.lower_bound_s
    return seconds


def expected_adapters_s(
    model: Model, part: Part, adapters: ServedAdapters, *, tp: int, tokens: int, requests: int
) -> float:
    """The same by measured kernels.

    Formula:  sum over products of two measured ones, tokens x inputs x rank of all its matrices and tokens x rank x
              outputs, + all but one of the different adapters' bytes at a copy's rate
    Assumes:  a kernel that serves many adapters takes as long as a product with one, and reads the others; ranks below
              64 as 64, the narrowest that was timed. Nobody's kernels for many adapters were timed
    Raises:   ValueError as adapted_products; for a part whose products were not timed
    Measured: tests.product_loop.sizing.test_adapter_times.test_what_punica_added_to_a_token
    """
    checks.count(tokens=tokens, requests=requests)
    timed: dict[str, Any] = {"part": part.key, "m": tokens, "format": FORMAT}
    seconds = 0.0
    for one, count in _of_model(model, tp):
        down = expected_product(**timed, n=max(NARROWEST, one.matrices * adapters.rank), k=one.inputs)
        up = expected_product(**timed, n=one.outputs, k=max(NARROWEST, adapters.rank))
        seconds += count * (down.seconds + up.seconds)
    others = adapters.distinct(requests) - 1
    read = others * adapter_bytes(model, rank=adapters.rank, tp=tp)
    return seconds + read / (part["memory_bytes_per_s"] * copy_share())


def _of_model(model: Model, tp: int) -> Iterator[tuple[AdaptedProduct, int]]:
    """Every product of the model that has an adapter, and in how many layers."""
    for layer, count in model.groups:
        for one in adapted_products(layer, hidden=model.hidden, tp=tp):
            yield one, count
