"""KV cache: the bytes of keys and values that a model keeps so that a new token need not recompute the old ones.

What attention has to read is `request_bytes`, the information minimum; what a named allocator holds for it,
`held_bytes`. From bytes to tokens and requests goes `kv_capacity`. Figures are for one rank: all, with tp=1.

>>> from threeloops.models.catalogue import model
>>> bytes_per_token(model("llama-3-8b"), bytes_per_element=2)
131072
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace

from threeloops import checks
from threeloops.models.architecture import Attention, LatentAttention, Mixer, Model, Recurrent
from threeloops.models.layers.compressed import CompressedAttention
from threeloops.product_loop.caches.entry_caches import entries_bytes
from threeloops.product_loop.caches.kv_heads import kv_heads_per_rank
from threeloops.product_loop.kv_allocators import Allocator
from threeloops.product_loop.kv_quantisation import UNQUANTISED, Quantisation, Stored
from threeloops.product_loop.recurrent_state import rank_state_bytes

MOMENTS = ("during_step", "between_steps")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankCache:
    """A cache spread over tensor-parallel ranks, all of which hold equally much."""

    tp: int
    rank_bytes: float
    one_copy_bytes: float  # the same cache on a single rank

    @property
    def total(self) -> float:
        return self.tp * self.rank_bytes

    @property
    def replication(self) -> float:
        """Bytes on all ranks per byte of one copy: 1 as long as KV heads suffice for all ranks."""
        return self.total / self.one_copy_bytes


def kv_bytes_per_token(*, num_layers: int, num_kv_heads: int, head_dim: int, bytes_per_element: float) -> float:
    """Bytes that one token leaves behind in a model of equal layers, in plain numbers.

    Formula:  2 (key and value) * num_layers * num_kv_heads * head_dim * bytes_per_element
    Assumes:  keys and values of equal width and no scales; with other layers, windows, latents or ranks:
              `bytes_per_token`, which adds this up layer by layer
    Source:   Shazeer, 2019, arXiv:1911.02150 (MQA); Ainslie et al., 2023, arXiv:2305.13245 (GQA)
    Counted:  simulate.product_loop.cache_walk.cached_elements

    >>> kv_bytes_per_token(num_layers=32, num_kv_heads=8, head_dim=128, bytes_per_element=2)  # Llama 3 8B: 128 KiB
    131072
    """
    checks.count(num_layers=num_layers, num_kv_heads=num_kv_heads, head_dim=head_dim)
    checks.positive(bytes_per_element=bytes_per_element)
    return 2 * num_layers * num_kv_heads * head_dim * bytes_per_element


def layer_bytes_per_token(
    attention: Mixer | None,
    *,
    bytes_per_element: float,
    quantisation: Quantisation = UNQUANTISED,
    tp: int = 1,
) -> float:
    """Bytes that one rank caches for one token in one layer.

    Formula:  KV heads of this rank * (head_dim + value_head_dim) * bytes_per_element + their scales; latent: (kv_rank
              + rope_head_dim) * bytes_per_element + scales, and the same for an indexer's key; compressed: one vector,
              and its share of an entry
    Assumes:  every rank holds the whole latent vector, which has no heads to split; a
              layer that reads another's cache adds 0, and so does one that keeps a state in place of a cache
    Source:   as kv_bytes_per_token; DeepSeek-AI, 2024, arXiv:2405.04434, section 2.1 (latent)
    Counted:  drills.kv_cache.sharing.LATENT
    """
    checks.positive(bytes_per_element=bytes_per_element)
    checks.count(tp=tp)
    if isinstance(attention, LatentAttention):
        checks.divides(part="tp", part_value=tp, whole="num_heads", whole_value=attention.num_heads)
        latent = attention.kv_rank * bytes_per_element + quantisation.vector_scale_bytes(attention.kv_rank)
        if attention.indexer:
            latent += quantisation.index_bytes(attention.indexer.head_dim, bytes_per_element=bytes_per_element)
        if quantisation.rope_bytes_per_element is not None:
            return latent + attention.rope_head_dim * quantisation.rope_bytes_per_element
        return (
            latent
            + attention.rope_head_dim * bytes_per_element
            + quantisation.vector_scale_bytes(attention.rope_head_dim)
        )
    if isinstance(attention, CompressedAttention):
        share = 1 / attention.ratio if attention.ratio else 0
        stored = Stored(bytes_per_element=bytes_per_element, quantisation=quantisation)
        return entries_bytes(attention, entries=share, window_tokens=1, **stored)
    if not isinstance(attention, Attention) or not attention.owns_cache:
        return 0
    heads = kv_heads_per_rank(num_heads=attention.num_heads, num_kv_heads=attention.num_kv_heads, tp=tp)
    widths = (attention.head_dim, attention.value_head_dim or attention.head_dim)
    plain = heads * sum(widths) * bytes_per_element
    index = attention.blocks.head_dim if attention.blocks else 0
    beside = quantisation.index_bytes(index, bytes_per_element=bytes_per_element) if index else 0
    return plain + heads * sum(quantisation.vector_scale_bytes(width) for width in widths) + beside


def _model_bytes(
    model: Model,
    slots: Callable[[int | None], int],
    *,
    bytes_per_element: float,
    quantisation: Quantisation,
    tp: int,
    entries: Callable[[int, int], float] = operator.floordiv,
) -> float:
    """Slots, as a function of a layer's window, times the bytes of a slot, over all layers; of compressed layers also
    entries, as a function of tokens and of tokens to an entry.
    """
    total: float = 0
    stored = Stored(bytes_per_element=bytes_per_element, quantisation=quantisation)
    for layer, num_layers in model.groups:
        one = layer.attention
        window = one.window if isinstance(one, Attention | CompressedAttention) else None
        if isinstance(one, CompressedAttention):
            number = entries(slots(None), one.ratio) if one.ratio else 0
            total += num_layers * entries_bytes(one, entries=number, window_tokens=slots(window), **stored)
        else:
            total += num_layers * slots(window) * layer_bytes_per_token(one, **stored, tp=tp)
    return total


def states_bytes(model: Model, *, tp: int = 1) -> float:
    """Bytes that the recurrent layers of a hybrid model keep for one request on one rank, whatever its length; 0 where
    every layer attends.

    Formula: sum of rank_state_bytes over the recurrent layers
    Source:  as rank_state_bytes
    Measured: measure.product_loop.kv_cache.state_bytes
    """
    return sum(
        num_layers * rank_state_bytes(one, tp=tp)
        for layer, num_layers in model.groups
        for one in (layer.attention, layer.state)
        if isinstance(one, Recurrent)
    )


def bytes_per_token(
    model: Model,
    *,
    bytes_per_element: float,
    quantisation: Quantisation = UNQUANTISED,
    tp: int = 1,
    past_tokens: int = 0,
) -> float:
    """Bytes by which one more token grows the cache of a request that already holds `past_tokens`.

    Formula: sum of layer_bytes_per_token over the layers that still grow
    Assumes: a windowed layer stops growing once its window is full; with past_tokens=0 every layer grows
    Source:  Kwon et al., 2023, arXiv:2309.06180, section 3 (800 KB per token of OPT-13B, where KB is 1,024 bytes)
    Measured: measure.product_loop.character_decoder.KvCache
    """
    checks.count(at_least=0, past_tokens=past_tokens)

    def grows(window: int | None) -> int:
        return int(window is None or past_tokens < window)

    stored = Stored(bytes_per_element=bytes_per_element, quantisation=quantisation)
    return _model_bytes(model, grows, **stored, tp=tp, entries=operator.truediv)


def request_bytes(
    model: Model,
    *,
    tokens: int,
    bytes_per_element: float,
    quantisation: Quantisation = UNQUANTISED,
    tp: int = 1,
    moment: str = "during_step",
) -> float:
    """Information minimum of one request of `tokens` tokens (prompt and generated together): what attention can still
    read.

    Formula: sum over layers of layer_bytes_per_token * min(tokens, window), and states_bytes
    Assumes: `moment` says when. "during_step": the newest token reads itself and window - 1 earlier ones, so a
             windowed layer holds min(tokens, window). "between_steps": the next token brings its own entry, so
             min(tokens, window - 1) suffice. Full layers hold `tokens` at both.
    Source:  Jiang et al., Mistral 7B, 2023, arXiv:2310.06825, section 2 (rolling buffer of `window` entries)
    Counted:  simulate.product_loop.cache_walk.cached_elements
    Measured: measure.product_loop.kv_cache.cache_weight
    """
    checks.count(at_least=0, tokens=tokens)
    checks.one_of(MOMENTS, moment=moment)

    def readable(window: int | None) -> int:
        return tokens if window is None else min(tokens, window if moment == "during_step" else window - 1)

    cached = _model_bytes(model, readable, bytes_per_element=bytes_per_element, quantisation=quantisation, tp=tp)
    return cached + (states_bytes(model, tp=tp) if tokens else 0)


def per_rank(
    model: Model,
    *,
    tokens: int,
    batch: int,
    tp: int,
    bytes_per_element: float,
    quantisation: Quantisation = UNQUANTISED,
    dcp: int = 1,
) -> RankCache:
    """Information minimum of `batch` equal requests on each of `tp` ranks, and how often the cache exists in all.

    Assumes: dcp ranks that would hold copies share the tokens of one instead (decode context parallelism)
    Raises: ValueError if the heads do not split over the ranks, see kv_heads_per_rank; or if dcp divides no copies
    Source: vLLM, docs/serving/context_parallel_deployment.md, 2026
    """
    checks.count(tokens=tokens, batch=batch, dcp=dcp)
    one_copy = request_bytes(model, tokens=tokens, bytes_per_element=bytes_per_element, quantisation=quantisation)
    on_rank = request_bytes(model, tokens=tokens, bytes_per_element=bytes_per_element, quantisation=quantisation, tp=tp)
    spread = RankCache(tp=tp, rank_bytes=batch * on_rank, one_copy_bytes=batch * one_copy)
    if dcp > 1 and spread.replication % dcp:
        raise ValueError(f"dcp={dcp} must divide the copies on {tp} ranks, of which there are {spread.replication:g}")
    return spread if dcp == 1 else replace(spread, rank_bytes=spread.rank_bytes / dcp)


def refuse_sharing(model: Model, *, dcp: int) -> None:
    """For decode context parallelism: the ranks of a group share the tokens of every layer's cache, or of none.

    Raises: ValueError for a model with layers whose caches are not shared like that
    Source: vLLM 0.30, v1/kv_cache_interface.py (SlidingWindowSpec) and v1/core/kv_cache_coordinator.py
            (HybridKVCacheCoordinator); SGLang, pull request 31821, 2026 (an indexer's keys stay whole on every rank)
    """
    for layer, _ in model.groups:
        mixer = layer.attention
        why = ""
        if isinstance(mixer, Attention) and mixer.window is not None:
            why = "has windowed layers, whose tokens vLLM does not share"
        elif isinstance(mixer, LatentAttention) and mixer.indexer:
            why = "has an indexer that reads every token on every rank"
        elif mixer is not None and not isinstance(mixer, Attention | LatentAttention):
            why = "has layers with a state, or with compressed tokens"
        if dcp > 1 and why:
            raise ValueError(f"dcp={dcp}: {model.name} {why}; leave it out")


def held_bytes(
    model: Model,
    *,
    tokens: int,
    bytes_per_element: float,
    allocator: Allocator,
    quantisation: Quantisation = UNQUANTISED,
    tp: int = 1,
    peak: bool = False,
) -> float:
    """Bytes that the allocator holds for one request: at `tokens` tokens, or (peak) the most on its way there.

    Formula: sum over layers of layer_bytes_per_token * slots, and states_bytes; the slots of each allocator, and its
             source, are in kv_allocators
    Source:   by definition: what an allocator sets aside, layer by layer
    Measured: measure.product_loop.kv_cache.weighed_cache, measure.product_loop.kv_cache.static_cache
    """
    checks.count(at_least=0, tokens=tokens)

    def held(window: int | None) -> int:
        return (
            allocator.peak_slots(tokens=tokens, window=window)
            if peak
            else allocator.slots(tokens=tokens, window=window)
        )

    cached = _model_bytes(model, held, bytes_per_element=bytes_per_element, quantisation=quantisation, tp=tp)
    return cached + (states_bytes(model, tp=tp) if tokens else 0)
