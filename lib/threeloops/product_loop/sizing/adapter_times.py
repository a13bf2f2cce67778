"""Adapter times: what LoRA adapters beside a served model take of a GPU's memory, and of the time of a step.

>>> from threeloops.models import catalogue
>>> llama = catalogue.model("llama-3-8b")
>>> of_one = adapter_bytes(llama, rank=16, tp=1)
>>> f"{of_one / 1e6:.0f} MB for each, {adapter_bytes(llama, rank=16, tp=2) / of_one:.2f} of it on each of two GPUs"
'84 MB for each, 0.68 of it on each of two GPUs'

Source: Hu et al., LoRA, 2021, arXiv:2106.09685, section 4.1 (y = W x + B A x); vLLM, lora/layers (as
        adapted_products), config/lora.py (ranks)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from threeloops import checks, dtypes
from threeloops.facts.hardware import Part
from threeloops.models.architecture import Model
from threeloops.operations import roofline
from threeloops.operations.expected_times import expected_product
from threeloops.operations.recorded_rates import copy_share
from threeloops.product_loop.adapter_batches import distinct_adapters
from threeloops.product_loop.sizing.adapted_products import AdaptedProduct, adapted_products

FORMAT = "bf16"  # of adapters, however the weights beside them are stored
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

    def read(self, product: AdaptedProduct, *, tokens: int, requests: int) -> float:
        """Matrices A, or B, of one product that a step of so many tokens reads: of different adapters, and of each the
        experts that its tokens chose.

        Formula:  adapters * experts * (1 - (1 - (1 - (1 - chosen share)^(tokens / requests)) / adapters)^requests)
        Assumes:  requests choose adapters, and tokens experts, evenly and each by itself
        Source:   by definition of an expectation, as distinct_adapters
        Counted:  tests.product_loop.sizing.test_adapter_times.test_read_adapters_are_counted_by_drawing_them
        """
        checks.count(tokens=tokens, requests=requests)
        touched = 1 - (1 - product.chosen_share) ** (tokens / requests)
        wanted: float = 1 - (1 - touched / self.number) ** requests
        return self.number * product.experts * wanted


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


def adapter_bytes(model: Model, *, rank: int, tp: int, ep: int = 1, dp: int = 1) -> float:
    """Of one adapter on one of tp GPUs; of the dp groups of so many, which share the experts, ep hold different ones.

    Formula:  sum over matrices of rank * (inputs + outputs) * 2 bytes; outputs / tp, of output and down projections
              inputs / tp: the other half is whole on every GPU, also of every expert; with ep experts / ep, uncut
    Raises:   ValueError as adapted_products
    Source:   as the module's; vLLM without --fully-sharded-loras
    Counted:  tests.product_loop.sizing.test_adapter_times.test_bytes_are_those_of_tensors_that_an_engine_would_make
    """
    elements = sum(
        count * one.experts * rank * (one.matrices * one.inputs + one.outputs)
        for one, count in _of_model(model, tp, ep, dp)
    )
    return elements * dtypes.bytes_per_element(FORMAT)


def bound_adapters_s(
    model: Model,
    part: Part,
    adapters: ServedAdapters,
    *,
    tp: int,
    ep: int = 1,
    dp: int = 1,
    tokens: int,
    requests: int,
    of_all: tuple[int, int] | None = None,
) -> tuple[float, float]:
    """Seconds that no engine beats, for so many tokens of so many requests of a group, beside the model's own
    products: of what the group does by itself, and of the experts.

    Formula:  sum over products of max(FLOPs / peak, bytes / bandwidth) of A x, and of B (A x); 2 FLOPs a token and
              element of its adapter, of experts of those that it chose; every different adapter is read once, of
              experts those that a token of its requests chose
    Assumes:  the tokens' own numbers are at hand: they are those of the product beside it; an even router. Absorbed
              latents need more FLOPs beside keys' and values' expansion, for every head, than are counted
    Units:    of_all: the tokens and requests of all groups, which the experts have; without it those of this one
    Raises:   ValueError as adapted_products
    Counted:  tests.product_loop.sizing.test_adapter_times.test_few_tokens_read_adapters_and_many_compute
    """
    checks.count(tokens=tokens, requests=requests)
    element = dtypes.bytes_per_element(FORMAT)
    peak, bandwidth = part.peak_flops_per_s(FORMAT), part["memory_bytes_per_s"]
    seconds = [0.0, 0.0]
    for one, count in _of_model(model, tp, ep, dp):
        here, asking = of_all if of_all and one.routed else (tokens, requests)
        read = adapters.read(one, tokens=here, requests=asking)
        for elements in (one.matrices * one.inputs * adapters.rank, one.outputs * adapters.rank):
            flops = 2 * here * one.experts * one.chosen_share * elements
            work = roofline.Work(flops=flops, moved_bytes=read * elements * element)
            bound = roofline.time(work, peak_flops_per_s=peak, memory_bytes_per_s=bandwidth)
            seconds[one.routed] += count * bound.lower_bound_s
    return seconds[0], seconds[1]


def expected_adapters_s(
    model: Model, part: Part, adapters: ServedAdapters, *, tp: int, tokens: int, requests: int
) -> float:
    """Seconds that the adapters of a step are expected to add, by measured kernels.

    Formula:  sum over products of two measured ones, tokens x inputs x rank of all its matrices and tokens x rank x
              outputs, + all but one of the different adapters' bytes at a copy's rate
    Assumes:  a kernel that serves many adapters takes as long as a product with one, and reads the others; ranks below
              64 as 64, the narrowest that was timed. Nobody's kernels for many adapters were timed
    Raises:   ValueError as adapted_products; beside experts and latents, for whose kernels no product stands; for a
              part whose products were not timed
    Measured: tests.product_loop.sizing.test_adapter_times.test_what_punica_added_to_a_token
    """
    checks.count(tokens=tokens, requests=requests)
    timed: dict[str, Any] = {"part": part.key, "m": tokens, "format": FORMAT}
    seconds = 0.0
    for one, count in _of_model(model, tp, 1, 1):
        if one.untimed:
            raise ValueError(f"adapters beside {one.untimed} have kernels of their own, which are not timed")
        down = expected_product(**timed, n=max(NARROWEST, one.matrices * adapters.rank), k=one.inputs)
        up = expected_product(**timed, n=one.outputs, k=max(NARROWEST, adapters.rank))
        seconds += count * (down.seconds + up.seconds)
    others = adapters.distinct(requests) - 1
    read = others * adapter_bytes(model, rank=adapters.rank, tp=tp)
    return seconds + read / (part["memory_bytes_per_s"] * copy_share())


def _of_model(model: Model, tp: int, ep: int, dp: int) -> Iterator[tuple[AdaptedProduct, int]]:
    """Every product of the model that has an adapter, and in how many layers."""
    for layer, count in model.groups:
        for one in adapted_products(layer, hidden=model.hidden, tp=tp, ep=ep, dp=dp):
            yield one, count
