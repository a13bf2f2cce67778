"""A plain transformer block, written so that every tensor it keeps for its backward pass can be named.

It is built from the same description as the predictions (a Layer and a set of Kernels) and runs on any machine.

>>> layer = Layer(
...     attention=Attention(num_heads=3, num_kv_heads=3, head_dim=8),
...     mlp=DenseMlp(intermediate=96, gated=False, activation="gelu"),
...     norm="layernorm",
...     num_norms=2,
... )
>>> block = TransformerBlock(layer, hidden=24, kernels="sdpa", dropout=0.0, dtype=torch.float32)
>>> block(torch.ones(2, 5, 24)).shape
torch.Size([2, 5, 24])
"""

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from threeloops import checks
from threeloops.measure.models.block_attention import Core, GroupedQuery, Latent
from threeloops.measure.models.block_mlps import Dense, Mixture
from threeloops.measure.models.block_operations import dropped, norm
from threeloops.models.architecture import Attention, DenseMlp, Layer
from threeloops.training_loop.memory.activation_kernels import KERNELS, Kernels


class TransformerBlock(nn.Module):
    """One block, as a Layer describes it."""

    def __init__(
        self,
        layer: Layer,
        *,
        hidden: int,
        kernels: str | Kernels,
        dropout: float,
        dtype: torch.dtype,
        recompute: str = "none",
    ) -> None:
        super().__init__()
        checks.one_of(("none", "selective", "full"), recompute=recompute)
        if not isinstance(kernels, Kernels):
            checks.one_of(KERNELS, kernels=kernels)
            kernels = KERNELS[kernels]
        self.dropout, self.recompute = dropout, recompute
        self.norms = nn.ModuleList(norm(hidden, layer.norm, kernels, dtype) for _ in range(layer.num_norms))
        core = Core(kernels=kernels, dropout=dropout, recompute=recompute == "selective")
        attention, mlp = layer.attention, layer.mlp
        kind = GroupedQuery if isinstance(attention, Attention) else Latent
        self.attention = kind(attention, core, hidden=hidden, dtype=dtype)  # type: ignore[arg-type]
        self.mlp = (Dense if isinstance(mlp, DenseMlp) else Mixture)(mlp, hidden=hidden, kernels=kernels, dtype=dtype)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        if self.recompute == "full":
            recomputed: Tensor = checkpoint(self._block, x, use_reentrant=False)
            return recomputed
        return self._block(x)

    def _block(self, x: Tensor) -> Tensor:
        before_attention, before_mlp, *after = self.norms
        after_attention, after_mlp = after or (nn.Identity(), nn.Identity())
        x = x + dropped(after_attention(self.attention(before_attention(x))), self.dropout)
        return x + dropped(after_mlp(self.mlp(before_mlp(x))), self.dropout)
