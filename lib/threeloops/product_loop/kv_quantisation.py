"""Quantised KV caches: what is stored beside the elements, so that they can be read back.

A cache in int8 is not half of one in bf16: its scales are cached too, token by token.

>>> PER_TOKEN_HEAD.vector_scale_bytes(128), NVFP4.vector_scale_bytes(128)
(4, 8)

Source: vLLM, v1/kv_cache_interface.py (KVQuantMode, AttentionSpec.page_size_bytes,
        FullAttentionSpec.real_page_size_bytes, MLAAttentionSpec)
"""

from dataclasses import dataclass, replace
from typing import TypedDict

from threeloops import checks, dtypes, spelling
from threeloops.models.architecture import LatentAttention, Model
from threeloops.product_loop.gguf_formats import GGUF_FORMATS
from threeloops.units import BITS_PER_BYTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantisation:
    """The scales of one format. Give the bare element size as bytes_per_element: `dtypes` counts nvfp4 and mxfp4 with
    their scales, this adds them itself.
    """

    name: str
    scale_bytes: float  # one scale, its zero point included
    # None: one scale for the whole vector of one token, one head, and key or value
    elements_per_scale: int | None = None
    # a latent cache may keep its position key unquantised, without scales
    rope_bytes_per_element: float | None = None
    # the keys of an indexer are kept as INDEX_KEYS says, whatever the format of the latents
    index_keys_apart: bool = False

    def __post_init__(self) -> None:
        checks.non_negative(scale_bytes=self.scale_bytes)
        if self.elements_per_scale is not None:
            checks.count(elements_per_scale=self.elements_per_scale)
        if self.rope_bytes_per_element is not None:
            checks.positive(rope_bytes_per_element=self.rope_bytes_per_element)

    def vector_scale_bytes(self, width: int) -> float:
        """Scale bytes of one cached vector of `width` elements.

        Raises: ValueError if groups of elements_per_scale do not fill the vector evenly
        """
        if self.elements_per_scale is None:
            return self.scale_bytes
        checks.divides(
            part="elements_per_scale", part_value=self.elements_per_scale, whole="vector width", whole_value=width
        )
        return self.scale_bytes * (width // self.elements_per_scale)

    def index_bytes(self, width: int, *, bytes_per_element: float) -> float:
        """Bytes of the one key that an indexer caches for a token.

        Raises: ValueError as vector_scale_bytes
        """
        if self.index_keys_apart:
            narrow = INDEX_KEYS.scale_bytes if width < 128 else INDEX_KEYS.vector_scale_bytes(width)
            return width * INDEX_BYTES_PER_ELEMENT + narrow
        return width * bytes_per_element + self.vector_scale_bytes(width)


# An indexer's keys in every engine's own cache: fp8 with one fp32 scale for 128 elements, 132 bytes of 128.
INDEX_KEYS, INDEX_BYTES_PER_ELEMENT = Quantisation(name="index keys", scale_bytes=4, elements_per_scale=128), 1
# fp8 with one scale per tensor needs no more than this either: two numbers per layer, whatever the number of tokens.
UNQUANTISED = Quantisation(name="unquantised", scale_bytes=0)
PER_TOKEN_HEAD = Quantisation(name="per-token-head", scale_bytes=4)  # fp32 scales beside int8 or fp8 elements
NVFP4 = Quantisation(name="nvfp4", scale_bytes=1, elements_per_scale=16)  # fp8 scales beside elements of half a byte
# vLLM's fp8_ds_mla: 656 bytes per token
FP8_LATENT = Quantisation(name="fp8-latent", scale_bytes=4, elements_per_scale=128, rope_bytes_per_element=2)


class Stored(TypedDict):
    """A format as the formulas of a cache take it."""

    bytes_per_element: float
    quantisation: Quantisation


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheFormat:
    """How an engine keeps keys and values, by the name of its own option: the bare elements, and what stands beside."""

    name: str
    bytes_per_element: float
    quantisation: Quantisation = UNQUANTISED
    engine: str = ""  # whose name this is; empty for a plain format

    @property
    def mean_bytes_per_element(self) -> float:
        """Scales included; of formats whose scales stand at equal distances, whatever the vector.

        Raises: ValueError for the others
        """
        if self.quantisation.rope_bytes_per_element is not None or (
            self.quantisation.scale_bytes and self.quantisation.elements_per_scale is None
        ):
            raise ValueError(
                f"cache={self.name!r} takes bytes by the vector, which `threeloops kv` and `threeloops fit` count; here"
                " give a format like fp8"
            )
        return self.bytes_per_element + self.quantisation.scale_bytes / (self.quantisation.elements_per_scale or 1)


LLAMA_CPP_TYPES = ("q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")  # its --cache-type-k besides f32, f16 and bf16


def _of_blocks(name: str) -> CacheFormat:
    """A block format of llama.cpp: a scale, or a scale and a minimum, for each block of numbers."""
    form = GGUF_FORMATS[name.upper()]
    beside = form.block_bytes - form.block * form.element_bits // BITS_PER_BYTE
    return CacheFormat(
        name=name,
        bytes_per_element=form.element_bits / BITS_PER_BYTE,
        quantisation=Quantisation(name=name, scale_bytes=beside, elements_per_scale=form.block),
        engine="llama.cpp",
    )


CACHE_FORMATS = {
    **{
        name: CacheFormat(name=name, bytes_per_element=dtypes.bytes_per_element(name))
        for name in dtypes.BITS
        if name not in dtypes.OF_WEIGHTS
    },
    **{name: _of_blocks(name) for name in LLAMA_CPP_TYPES},
    **{
        name: CacheFormat(name=name, bytes_per_element=1, quantisation=PER_TOKEN_HEAD, engine="vLLM")
        for name in ("fp8_per_token_head", "int8_per_token_head")
    },
    "fp8_ds_mla": CacheFormat(name="fp8_ds_mla", bytes_per_element=1, quantisation=FP8_LATENT, engine="vLLM"),
}
_SPELLINGS = {name: dtypes.SPELLINGS.get(name, ()) for name in CACHE_FORMATS}


def cache_format(model: Model, **typed: str) -> CacheFormat:
    """The format of a cache in any spelling, as engines keep it for this model.

    Assumes:  where an indexer chooses what a latent attention reads, fp8 means fp8_ds_mla (656 bytes a token and
              layer), which is what the kernels of such a model read, and the indexer's keys are in fp8 with their
              scales (132) in any case
    Raises:   ValueError for an unknown name, and for fp8_ds_mla of a model without latents
    Source:   vLLM, model_executor/models/deepseek_v2.py (DeepseekV32IndexerCache; fp8 is made fp8_ds_mla); SGLang,
              mem_cache/memory_pool.py (index_k_with_scale_buffer); llama.cpp, common/arg.cpp (kv_cache_types)

    >>> from threeloops.models.catalogue import model
    >>> cache_format(model("llama-3-8b"), cache="Q8_0").mean_bytes_per_element * 32
    34.0
    >>> cache_format(model("deepseek-v3.2"), cache="fp8").name
    'fp8_ds_mla'
    """
    form = CACHE_FORMATS[spelling.key_of(_SPELLINGS, **typed)]
    latents = [layer.attention for layer, _ in model.groups if isinstance(layer.attention, LatentAttention)]
    indexed = any(latent.indexer for latent in latents)
    if form.name == "fp8" and indexed:
        form = CACHE_FORMATS["fp8_ds_mla"]
    if form.name == "fp8_ds_mla" and not latents:
        raise ValueError(f"cache='fp8_ds_mla' is a format of latents, and {model.name} has none; fp8 is its plain one")
    if indexed:
        return replace(form, quantisation=replace(form.quantisation, index_keys_apart=True))
    return form
