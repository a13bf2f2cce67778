"""Feed-forward blocks: dense ones, and mixtures of experts.

>>> DenseMlp(intermediate=14336, gated=True, activation="silu").num_matrices
3
"""

from dataclasses import dataclass

from threeloops import checks


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseMlp:
    """A feed-forward block: two matrices, or three when gated (SwiGLU, GeGLU)."""

    intermediate: int
    gated: bool
    # "gelu", "gelu_new" (its tanh form, written in plain operations), "silu", "relu", "relu2" (relu squared): as the
    # config names it, simplified
    activation: str
    bias: bool = False

    def __post_init__(self) -> None:
        checks.count(intermediate=self.intermediate)

    @property
    def num_matrices(self) -> int:
        return 3 if self.gated else 2


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeMlp:
    """A mixture of experts: a router, `num_experts` feed-forward blocks of which `top_k` run per token, and shared
    ones that always run.
    """

    num_experts: int
    top_k: int
    expert: DenseMlp
    shared: DenseMlp | None = None  # all shared experts side by side, as one block
    router_bias: bool = False
    # a load-balancing bias per expert that is not trained by gradient: stored as a buffer, not a parameter
    correction_bias: bool = False
    shared_gate: bool = False  # a learned scalar gate on the shared block
    # routed experts work on a projection of the token this wide, and their sum is projected back; None: on the token
    latent: int | None = None

    def __post_init__(self) -> None:
        checks.count(num_experts=self.num_experts, top_k=self.top_k)
        if self.top_k > self.num_experts:
            raise ValueError(f"top_k={self.top_k} must not exceed num_experts={self.num_experts}")
        if self.latent is not None:
            checks.count(latent=self.latent)
