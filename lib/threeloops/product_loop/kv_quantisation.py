"""Quantised KV caches: what is stored beside the elements, so that they can be read back.

A cache in int8 is not half of one in bf16: its scales are cached too, token by token.

>>> PER_TOKEN_HEAD.vector_scale_bytes(128), NVFP4.vector_scale_bytes(128)
(4, 8)

Source: vLLM, v1/kv_cache_interface.py (KVQuantMode, AttentionSpec.page_size_bytes,
        FullAttentionSpec.real_page_size_bytes, MLAAttentionSpec)
"""

from dataclasses import dataclass

from threeloops import checks


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


# fp8 with one scale per tensor needs no more than this either: two numbers per layer, whatever the number of tokens.
UNQUANTISED = Quantisation(name="unquantised", scale_bytes=0)
PER_TOKEN_HEAD = Quantisation(name="per-token-head", scale_bytes=4)  # fp32 scales beside int8 or fp8 elements
NVFP4 = Quantisation(name="nvfp4", scale_bytes=1, elements_per_scale=16)  # fp8 scales beside elements of half a byte
# vLLM's fp8_ds_mla: 656 bytes per token
FP8_LATENT = Quantisation(name="fp8-latent", scale_bytes=4, elements_per_scale=128, rope_bytes_per_element=2)
