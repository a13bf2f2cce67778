"""What recurrent layers keep: against bytes that autograd keeps, with functions that save what their kernels save."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from threeloops.measure.training_loop.saved_tensors import saved_bytes
from threeloops.models.architecture import Attention, DenseMlp, Layer, MoeMlp
from threeloops.models.recurrent_layers import DeltaState, StateSpace
from threeloops.training_loop.memory.activations import per_layer

BATCH, TOKENS, HIDDEN = 2, 64, 48
SIZES = {"hidden": HIDDEN, "sequence": TOKENS, "micro_batch": BATCH, "bytes_per_element": 2, "dropout": False}
SPACE = StateSpace(
    num_heads=8, head_dim=12, state_dim=10, groups=2, conv_entries=4, conv_bias=True, bias=False, chunk=16
)
DELTA = DeltaState(key_heads=2, value_heads=4, key_head_dim=12, value_head_dim=10, conv_entries=4, chunk=16)


def alone(mixer: Any, mlp: Any = None) -> Layer:
    return Layer(attention=mixer, mlp=mlp, norm="rmsnorm", num_norms=1)


class Saves(torch.autograd.Function):
    """Hands out one tensor of the width that is asked for, and keeps what it is told to keep."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, width: int, *kept: Tensor) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(*kept)
        return x.new_ones((*x.shape[:2], width))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        raise AssertionError("only what is kept is looked at")


def norm(x: Tensor, rows: int) -> Tensor:
    """Fused: keeps its input, and a number for each of its rows of a token."""
    return Saves.apply(x, x.shape[-1], x, torch.ones(BATCH, TOKENS, rows))  # type: ignore[no-any-return]


def linear(columns: int, inner: int) -> nn.Linear:
    return nn.Linear(inner, columns, bias=False, dtype=torch.bfloat16)


class Space(nn.Module):
    """Megatron's mixer in training: one function from the projection to the gated output, then a norm by groups."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.out = linear(SPACE.input_columns, HIDDEN), linear(HIDDEN, SPACE.inner)

    def forward(self, x: Tensor) -> Tensor:
        projected = self.into(norm(x, 1))
        read = projected.new_ones((BATCH, TOKENS, SPACE.inner))
        gated = Saves.apply(projected, SPACE.inner, projected, read)
        return self.out(norm(gated, SPACE.groups))  # type: ignore[no-any-return]


class Delta(nn.Module):
    """Qwen3-Next's mixer with the kernels of flash-linear-attention."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.out = linear(DELTA.input_columns, HIDDEN), linear(HIDDEN, DELTA.value_dim)

    def forward(self, x: Tensor) -> Tensor:
        projected = self.into(norm(x, 1))
        wide = projected[..., : DELTA.conv_channels].clone()
        gate = projected[..., DELTA.conv_channels : DELTA.conv_channels + DELTA.value_dim].clone()
        read = Saves.apply(wide, DELTA.conv_channels, wide)
        heads, small = DELTA.value_heads, torch.ones
        keys = [projected.new_ones((BATCH, TOKENS, heads, DELTA.key_head_dim)) for _ in range(2)]
        values = projected.new_ones((BATCH, TOKENS, heads, DELTA.value_head_dim))
        inverse = projected.new_ones((BATCH, TOKENS, heads, DELTA.chunk))
        scales = [small(BATCH, TOKENS, heads) for _ in range(2)]
        decays, strengths = small(BATCH, TOKENS, heads), projected.new_ones((BATCH, TOKENS, heads))
        scanned = Saves.apply(read, DELTA.value_dim, *keys, values, inverse, *scales, decays, strengths)
        return self.out(Saves.apply(scanned, DELTA.value_dim, scanned, gate, small(BATCH, TOKENS, heads)))  # type: ignore[no-any-return]


@pytest.mark.parametrize(("state", "module"), [(SPACE, Space), (DELTA, Delta)], ids=["mamba-2", "delta"])
def test_bytes_are_those_that_autograd_keeps(state: Any, module: type[nn.Module]) -> None:
    x = torch.ones(BATCH, TOKENS, HIDDEN, dtype=torch.bfloat16, requires_grad=True)
    assert per_layer(alone(state), **SIZES, kernels="fused").total_bytes == saved_bytes(module(), x)


@pytest.mark.parametrize("state", [SPACE, DELTA])
def test_tensor_ranks_share_what_lies_between_the_projections(state: Any) -> None:
    """With sequence parallelism everything is shared; states are split by heads, never along their own widths."""
    one = per_layer(alone(state), **SIZES, kernels="fused").total_bytes
    two = per_layer(alone(state), **SIZES, kernels="fused", tp=2, sequence_parallel=True).total_bytes
    assert two * 2 == one
    with pytest.raises(ValueError, match="tp=4 must divide"):
        per_layer(alone(state), **SIZES, kernels="fused", tp=4)


def test_a_layer_of_one_block_keeps_that_block_only() -> None:
    attention, mlp = (
        Attention(num_heads=4, num_kv_heads=2, head_dim=12),
        DenseMlp(intermediate=96, gated=True, activation="silu"),
    )
    both = per_layer(Layer(attention=attention, mlp=mlp, norm="rmsnorm", num_norms=2), **SIZES, kernels="fused")
    parts = [
        per_layer(alone(mixer, block), **SIZES, kernels="fused") for mixer, block in ((attention, None), (None, mlp))
    ]
    assert both.total_bytes == sum(part.total_bytes for part in parts)
    assert per_layer(alone(SPACE), **SIZES, kernels="fused", recompute="full").rows == (
        ("block input", BATCH * TOKENS * HIDDEN * 2),
    )


def test_a_gate_on_attention_keeps_both_factors() -> None:
    attention = Attention(num_heads=4, num_kv_heads=2, head_dim=12)
    gated = Attention(num_heads=4, num_kv_heads=2, head_dim=12, gated=True)
    plain, more = (per_layer(alone(one), **SIZES, kernels="fused").total_bytes for one in (attention, gated))
    x = torch.ones(BATCH, TOKENS, 4 * 12, dtype=torch.bfloat16, requires_grad=True)
    assert more - plain == saved_bytes(lambda read: read.clone() * torch.sigmoid(read), x)


def test_narrower_experts_keep_narrower_copies() -> None:
    expert = DenseMlp(intermediate=20, gated=False, activation="relu2")
    wide, narrow = (
        per_layer(alone(None, MoeMlp(num_experts=8, top_k=4, expert=expert, latent=latent)), **SIZES, kernels="fused")
        for latent in (None, 12)
    )
    copies = 2 * 4 * BATCH * TOKENS * 2  # in and out of four experts, 2 bytes
    assert wide.total_bytes - narrow.total_bytes == copies * (HIDDEN - 12) - BATCH * TOKENS * 12 * 2


def test_what_is_not_counted_is_refused() -> None:
    for kernels in ("eager", "korthikanti"):
        with pytest.raises(ValueError, match="runs a scan in plain operations, whose tensors are not counted"):
            per_layer(alone(SPACE), **SIZES, kernels=kernels)
