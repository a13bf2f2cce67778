"""Forward step: one pass through a model with the conventions it is counted under, and one row of the table that it
fills.

>>> ForwardStep(
...     phase="decode", batch=8, sequence=2048, causal="full", fused_attention=True, logits="all", bytes_per_element=2
... ).tokens
8
"""

from dataclasses import dataclass

from threeloops import checks
from threeloops.operations.attention import CAUSAL
from threeloops.operations.expert_layers import ROUTING
from threeloops.operations.roofline import Work

PHASES = ("prefill", "decode")
LOGITS = ("all", "last")
LATENT = ("expanded", "absorbed")
MATRIX, VECTOR = "matrix", "vector"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardStep:
    """One forward pass, and the conventions under which it is counted.

    prefill computes `sequence` new tokens per request; decode computes one, whose context, itself included, is
    `sequence` tokens long.
    """

    phase: str
    batch: int  # requests computed together
    sequence: int
    causal: str  # "full", "half" or "exact": see kernels.attended_pairs
    fused_attention: bool
    logits: str  # "all": the head runs for every new token (training); "last": for one per request (serving)
    bytes_per_element: float  # activations
    weight_bytes_per_element: float | None = None  # None: as activations
    kv_bytes_per_element: float | None = None  # keys and values as attention reads them; None: as activations
    latent: str | None = None  # needed where a layer has LatentAttention: see latent_attention_ops
    routing: str | None = None  # needed where a layer has MoeMlp: see experts_touched

    def __post_init__(self) -> None:
        checks.one_of(PHASES, phase=self.phase)
        checks.count(batch=self.batch, sequence=self.sequence)
        checks.one_of(CAUSAL, causal=self.causal)
        checks.one_of(LOGITS, logits=self.logits)
        checks.positive(bytes_per_element=self.bytes_per_element)
        if self.latent is not None:
            checks.one_of(LATENT, latent=self.latent)
        if self.routing is not None:
            checks.one_of(ROUTING, routing=self.routing)

    @property
    def query_tokens(self) -> int:
        """New tokens per request."""
        return self.sequence if self.phase == "prefill" else 1

    @property
    def tokens(self) -> int:
        """New tokens of all requests: the rows of every projection."""
        return self.batch * self.query_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One kernel of the table."""

    name: str
    unit: str  # MATRIX: a matmul, on the tensor cores; VECTOR: everything else
    work: Work  # of one launch
    count: int = 1  # equal layers that launch it
    group: int | None = None  # index into Model.groups; None outside the layers
