"""Activation kernels: which operations are fused, and the tensors that one rank therefore keeps.

>>> KERNELS["eager"].attention, KERNELS["fused"].attention
('explicit', 'flash')
"""

from dataclasses import dataclass
from math import prod
from types import MappingProxyType

from threeloops import checks

# torch keeps token ids as 64-bit integers and dropout masks as one byte per value
FP32_BYTES, MASK_BYTES, INDEX_BYTES = 4, 1, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """Which operations are fused, and so which tensors are kept."""

    name: str
    attention: str  # "explicit": the weights of every query over every key are a tensor; "flash": they never exist
    # "same": in the dtype of the block; "fp32": computed in fp32 and cast back (explicit attention only)
    softmax: str
    repeats_kv: bool  # True: grouped keys and values are copied to every query head before attention
    # "fused": keeps its input; "eager": plain operations that keep an fp32 copy and the normalised value
    rmsnorm: str
    gate: str  # "eager": activation, then product; "fused": one operation that recomputes the activation
    # "eager": a formula of plain operations that keeps every step; "fused": one operation that keeps its input
    gelu_new: str
    small_tensors: bool  # whether per-row statistics and token ids are counted

    def __post_init__(self) -> None:
        checks.one_of(("explicit", "flash"), attention=self.attention)
        checks.one_of(("same", "fp32"), softmax=self.softmax)
        checks.one_of(("fused", "eager"), rmsnorm=self.rmsnorm, gate=self.gate, gelu_new=self.gelu_new)


_ALL = (
    # Korthikanti et al., section 4.1: statistics are dropped as much smaller than the rest.
    Kernels(
        name="korthikanti",
        attention="explicit",
        softmax="same",
        repeats_kv=False,
        rmsnorm="fused",
        gate="eager",
        gelu_new="fused",
        small_tensors=False,
    ),
    # transformers with attn_implementation="eager".
    Kernels(
        name="eager",
        attention="explicit",
        softmax="fp32",
        repeats_kv=True,
        rmsnorm="eager",
        gate="eager",
        gelu_new="eager",
        small_tensors=True,
    ),
    # The same with torch's scaled_dot_product_attention(enable_gqa=True).
    Kernels(
        name="sdpa",
        attention="flash",
        softmax="same",
        repeats_kv=False,
        rmsnorm="eager",
        gate="eager",
        gelu_new="eager",
        small_tensors=True,
    ),
    # Fused norms, gates and activations as well: Megatron Core, Transformer Engine, Liger.
    Kernels(
        name="fused",
        attention="flash",
        softmax="same",
        repeats_kv=False,
        rmsnorm="fused",
        gate="fused",
        gelu_new="fused",
        small_tensors=True,
    ),
)

KERNELS = MappingProxyType({kernels.name: kernels for kernels in _ALL})


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTensor:
    """One tensor that waits for the backward pass, as this rank holds it."""

    name: str
    # "attention", "core" (softmax and what surrounds it: what selective recompute drops), "mlp", "block",
    # "embedding", "head"
    part: str
    shape: tuple[int, ...]
    bytes_per_element: int

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.bytes_per_element


@dataclass(frozen=True, slots=True, kw_only=True)
class RankView:
    """What one tensor-parallel rank sees of a micro-batch."""

    hidden: int
    sequence: int
    micro_batch: int
    bytes_per_element: int
    kernels: Kernels
    dropout: bool
    tp: int
    sequence_parallel: bool
    expert_tp: int | None
    autocast: bool  # fp32 weights and residual stream; every linear layer casts what it reads

    def __post_init__(self) -> None:
        checks.count(hidden=self.hidden, sequence=self.sequence, micro_batch=self.micro_batch, tp=self.tp)
        if self.bytes_per_element not in (2, 4):
            raise ValueError(f"bytes_per_element={self.bytes_per_element!r} must be 2 (bf16, fp16) or 4 (fp32)")
        if self.autocast and self.bytes_per_element != 2:
            raise ValueError(
                f"bytes_per_element={self.bytes_per_element!r} must be 2 under autocast, which multiplies in 16 bits;"
                " for plain fp32 take recipe 'fp32'"
            )
        if self.sequence_parallel:
            checks.divides(part="tp", part_value=self.tp, whole="sequence", whole_value=self.sequence)

    @property
    def stream(self) -> tuple[int, ...]:
        """Shape of the residual stream: tensor parallelism leaves it whole, sequence parallelism cuts it along the
        sequence.
        """
        return self.whole(self.hidden)

    def whole(self, width: int) -> tuple[int, ...]:
        """Shape of a tensor of another width that is treated as the residual stream is."""
        return (self.micro_batch, self.sequence // self.tp if self.sequence_parallel else self.sequence, width)

    def split(self, width: int, *, name: str) -> tuple[int, ...]:
        """Shape of a tensor whose width tensor parallelism cuts."""
        checks.divides(part="tp", part_value=self.tp, whole=name, whole_value=width)
        return (self.micro_batch, self.sequence, width // self.tp)

    def kept(self, name: str, part: str, shape: tuple[int, ...]) -> SavedTensor:
        return SavedTensor(name=name, part=part, shape=shape, bytes_per_element=self.bytes_per_element)

    def stream_kept(self, name: str, part: str, shape: tuple[int, ...]) -> SavedTensor:
        """A tensor of the residual stream, which autocast leaves in fp32."""
        return SavedTensor(
            name=name, part=part, shape=shape, bytes_per_element=FP32_BYTES if self.autocast else self.bytes_per_element
        )

    def read(self, name: str, part: str, shape: tuple[int, ...], *, linears: int) -> tuple[SavedTensor, ...]:
        """What linear layers read: one tensor for all of them, but under autocast, which casts an fp32 tensor for
        each, a tensor each.
        """
        if not self.autocast or linears == 1:
            return (self.kept(name, part, shape),)
        return tuple(self.kept(f"{name}, cast {number} of {linears}", part, shape) for number in range(1, linears + 1))

    def mask(self, name: str, part: str, shape: tuple[int, ...]) -> tuple[SavedTensor, ...]:
        return (SavedTensor(name=name, part=part, shape=shape, bytes_per_element=MASK_BYTES),) if self.dropout else ()

    def small(
        self, name: str, part: str, shape: tuple[int, ...], *, bytes_per_element: int = FP32_BYTES
    ) -> tuple[SavedTensor, ...]:
        return (
            (SavedTensor(name=name, part=part, shape=shape, bytes_per_element=bytes_per_element),)
            if self.kernels.small_tensors
            else ()
        )
