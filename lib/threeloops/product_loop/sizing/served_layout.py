"""Served layout: one copy of a model on the GPUs of a tensor group, or of several that share its experts, what is left
for its caches, and whom they seat.

>>> from threeloops.facts import hardware
>>> from threeloops.models import catalogue
>>> one = ServedLayout(
...     model=catalogue.model("llama-3-70b"),
...     part=hardware.part("h100-sxm5"),
...     weights="fp8",
...     cache="bf16",
...     tp=2,
...     memory_utilisation=0.92,
...     other_bytes=3e9,
... )
>>> f"{one.free_bytes / 1e9:.1f} GB for caches on each GPU, {one.seats(2500)} requests of 2,500 tokens"
'39.4 GB for caches on each GPU, 95 requests of 2,500 tokens'
"""

import math
from dataclasses import dataclass

from threeloops import checks
from threeloops.facts.hardware import Part
from threeloops.models.architecture import Attention, LatentAttention, Model, MoeMlp
from threeloops.product_loop import kv_budget, kv_cache, kv_capacity
from threeloops.product_loop.kv_allocators import VllmPaged
from threeloops.product_loop.kv_quantisation import CACHE_FORMATS
from threeloops.product_loop.sizing.adapter_times import ServedAdapters, adapter_bytes
from threeloops.product_loop.sizing.stored_weights import (
    FORMATS,
    experts_bytes_in,
    table_bytes_in,
    weights_bytes_in,
)

BLOCK_TOKENS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedLayout:
    """A model's copy: where it runs and how it is stored."""

    model: Model
    part: Part  # each GPU
    dcp: int = 1  # GPUs of a group that would keep copies of a cache, and share its tokens instead
    weights: str  # their format
    cache: str  # the format of keys and values
    tp: int  # GPUs of the copy, or of each of its groups
    pp: int = 1  # stages, each with a part of the layers on a tensor group of its own
    dp: int = 1  # groups with requests, attention and caches of their own, which share the experts
    ep: int = 1  # GPUs of a copy with different experts, which adapters beside them ask for
    memory_utilisation: float  # the share of the memory that the engine may use
    other_bytes: float  # of one GPU, for activations, CUDA graphs and buffers of the exchanges
    watermark: float = 0.0  # the share of the blocks that stays free when a request is let in beside others
    adapters: ServedAdapters | None = None

    def __post_init__(self) -> None:
        checks.count(tp=self.tp, dp=self.dp, pp=self.pp)
        checks.fraction(watermark=self.watermark)
        if self.pp > self.model.num_layers:
            raise ValueError(f"pp={self.pp} stages are more than the {self.model.num_layers} layers")
        if self.dp > 1 and not self.has_experts:
            raise ValueError(
                f"dp={self.dp} groups share experts, and {self.model.name} has none: they are copies of it"
            )
        checks.one_of(FORMATS, weights=self.weights)
        checks.one_of(CACHE_FORMATS, cache=self.cache)
        heads = {
            layer.attention.num_heads
            for layer, _ in self.model.groups
            if isinstance(layer.attention, Attention | LatentAttention)
        }
        for number in heads:
            checks.divides(part="tp", part_value=self.tp, whole="heads", whole_value=number)

        if self.dcp > 1:
            self._share_copies()

    def _share_copies(self) -> None:
        """Source: vLLM, docs/serving/context_parallel_deployment.md, 2026: at most as many as there are copies."""
        copies = self.copies
        kv_cache.refuse_sharing(self.model, dcp=self.dcp)
        if copies == 1:
            raise ValueError(f"dcp={self.dcp}: {self.tp} GPUs keep each cache once, so that there is nothing to share")
        if copies % self.dcp:
            raise ValueError(f"dcp={self.dcp} must divide the {copies} copies that {self.tp} GPUs keep of a cache")

    @property
    def cache_bytes(self) -> float:
        """Of an element of a cache, its share of scales included."""
        return CACHE_FORMATS[self.cache].mean_bytes_per_element

    @property
    def copies(self) -> int:
        """How often the GPUs of a group would keep a cache, in the layer where it is least often; 1 without caches."""
        each = []
        for layer, _ in self.model.groups:
            whole, one = (
                kv_cache.layer_bytes_per_token(layer.attention, bytes_per_element=1, tp=tp) for tp in (1, self.tp)
            )
            each += [round(self.tp * one / whole)] if whole else []
        return min(each, default=1)

    @property
    def paged(self) -> VllmPaged:
        """Blocks of 16 tokens on every GPU."""
        return VllmPaged(block_tokens=BLOCK_TOKENS * self.dcp)

    @property
    def has_experts(self) -> bool:
        return any(isinstance(layer.mlp, MoeMlp) for layer, _ in self.model.groups)

    @property
    def stage_gpus(self) -> int:
        """Of the copy, those that have part in one layer."""
        return self.tp * self.dp

    @property
    def gpus(self) -> int:
        """GPUs of one copy of the model."""
        return self.stage_gpus * self.pp

    @property
    def lanes(self) -> int:
        """Batches of a copy that are under way at a time: of its groups, or one for every stage."""
        return self.dp * self.pp

    @property
    def layers_share(self) -> float:
        """Of all layers, those of the fullest stage, whatever their kind: ceil(layers / pp) / layers."""
        return math.ceil(self.model.num_layers / self.pp) / self.model.num_layers

    @property
    def weights_bytes(self) -> float:
        """Of one GPU, of the fullest stage: its layers, and the larger of the input table and the head; routed experts
        over all GPUs of a stage, all else over those of a group.
        """
        whole = weights_bytes_in(self.model, self.weights)
        if self.dp == 1:
            if self.pp == 1:
                return whole / self.tp
            first, last = table_bytes_in(self.model, self.weights)
            layers = whole - first - (0 if self.model.tied_head else last)
            return (self.layers_share * layers + max(first, last)) / self.tp
        experts = experts_bytes_in(self.model, self.weights)
        return experts / self.stage_gpus + (whole - experts) / self.tp

    @property
    def adapters_bytes(self) -> float:
        """Of one GPU: every adapter that is there.

        Raises:   ValueError for a model whose adapters are not counted
        """
        if self.adapters is None:
            return 0.0
        of_one = adapter_bytes(self.model, rank=self.adapters.rank, tp=self.tp, ep=self.ep, dp=self.dp)
        return self.layers_share * self.adapters.number * of_one

    @property
    def free_bytes(self) -> float:
        """Bytes of one GPU that are left for caches.

        Formula:  kv_budget.budget_bytes
        Raises:   ValueError where the weights leave nothing, with the share that would do
        """
        return kv_budget.budget_bytes(
            memory_bytes=self.part.capacity_bytes(),
            memory_utilisation=self.memory_utilisation,
            weights_bytes=self.weights_bytes + self.adapters_bytes,
            activation_peak_bytes=self.other_bytes,
            outside_bytes=0,
            graph_bytes=0,
        )

    @property
    def cached_bytes(self) -> float:
        """What the caches of all layers could take of each GPU of a tensor group, if it had all of them: as its stage
        has some only, and shares tokens with dcp GPUs, more than it has free.
        """
        return self.dcp * self.free_bytes / self.layers_share

    def seats(self, tokens: int) -> int:
        """Requests that can all grow to so many tokens at once, in blocks of 16 on each GPU, as many in every group.

        Assumes:  the watermark stays free, but of a request alone
        Source:   vLLM, v1/core/kv_cache_manager.py and config/scheduler.py (watermark), 2026
        """
        alone, beside = (
            kv_capacity.max_concurrent_requests(
                self.model,
                tokens=tokens,
                free_bytes=share * self.cached_bytes,
                bytes_per_element=self.cache_bytes,
                allocator=self.paged,
                tp=self.tp,
            )
            for share in (1, 1 - self.watermark)
        )
        return self.dp * max(min(alone, 1), beside)

    def longest_context(self) -> int | None:
        """Tokens that a single request could have by memory, whatever the model was made for; None without a limit."""
        return kv_capacity.longest_by_memory(
            self.model,
            batch=1,
            free_bytes=self.cached_bytes,
            bytes_per_element=self.cache_bytes,
            allocator=self.paged,
            tp=self.tp,
        )
