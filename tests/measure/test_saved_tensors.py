"""What autograd keeps on this machine, and the fused operations that stand in for GPU kernels."""

from contextlib import nullcontext

import pytest
import torch
from torch.nn import functional

from threeloops.measure.models.block_operations import FusedRmsNorm, FusedSwiGlu, RmsNorm
from threeloops.measure.models.transformer_block import TransformerBlock
from threeloops.measure.training_loop.saved_tensors import saved_bytes, saved_storages
from threeloops.models.architecture import Attention, DenseMlp, Layer
from threeloops.training_loop.memory.activation_kernels import KERNELS

GATED = Layer(
    attention=Attention(num_heads=6, num_kv_heads=2, head_dim=8),
    mlp=DenseMlp(intermediate=40, gated=True, activation="silu"),
    norm="rmsnorm",
    num_norms=2,
)


@pytest.fixture(autouse=True)
def one_thread():
    """Blocks this small only lose time to threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def ones(*shape, dtype=torch.float32):
    return torch.ones(shape, dtype=dtype, requires_grad=True)


def test_a_view_counts_as_its_whole_storage_and_once():
    wide = ones(7, 30)
    # Both factors are views into one storage of 7 * 30 fp32 values.
    assert saved_bytes(lambda x: x[:, :10] * x[:, 20:], wide) == 7 * 30 * 4


def test_parameters_and_buffers_are_left_out():
    norm = torch.nn.BatchNorm1d(10).eval()  # keeps its weight and both running statistics besides its input
    kept = saved_storages(norm, ones(7, 10))
    assert sum(storage.bytes for storage in kept) == 7 * 10 * 4
    assert saved_bytes(norm.forward, ones(7, 10)) > 7 * 10 * 4
    assert saved_bytes(norm.forward, ones(7, 10), module=norm) == 7 * 10 * 4


def test_autocast_saves_a_copy_of_a_weight_where_the_input_needs_a_gradient():
    linear = torch.nn.Linear(10, 30)
    with torch.autocast("cpu", torch.bfloat16):
        inner, first = saved_storages(linear, ones(7, 10)), saved_storages(linear, torch.ones(7, 10))
    assert sorted(storage.bytes for storage in inner) == sorted([7 * 10 * 2, 10 * 30 * 2])
    # The gradient of the weight needs the input alone.
    assert [storage.bytes for storage in first] == [7 * 10 * 2]


@pytest.mark.parametrize(("contexts", "copies"), [("one", 1), ("each", 2)])
def test_autocast_makes_its_copies_anew_every_time_it_is_entered(contexts, copies):
    """Two micro-batches in flight share their copies only if one autocast block runs both forward."""
    block = torch.nn.Sequential(torch.nn.Linear(10, 30), torch.nn.Linear(30, 10))

    def forward(x):
        losses = []
        with torch.autocast("cpu", torch.bfloat16) if contexts == "one" else nullcontext():
            for _ in range(2):
                with torch.autocast("cpu", torch.bfloat16) if contexts == "each" else nullcontext():
                    losses.append(block(x * 1).sum())  # not x itself: autocast caches the casts of leaves
        return losses[0] + losses[1]

    activations = 2 * 7 * (10 + 30) * 2
    assert saved_bytes(forward, ones(7, 10), module=block) == activations + copies * 2 * (10 * 30 * 2)


def test_evaluation_mode_saves_as_much_as_training_mode():
    block = torch.nn.Sequential(torch.nn.Linear(10, 30), torch.nn.GELU(), torch.nn.Linear(30, 10))
    assert saved_bytes(block.train(), ones(7, 10)) == saved_bytes(block.eval(), ones(7, 10)) == 7 * (10 + 30 + 30) * 4
    with torch.no_grad(), pytest.raises(ValueError, match="gradients are switched off"):
        saved_bytes(block, ones(7, 10))


def test_dropout_mask_is_as_wide_as_its_input_on_a_cpu_and_one_byte_in_the_gpu_kernel():
    assert saved_bytes(lambda x: functional.dropout(x, 0.1), ones(7, 10)) == 70 * 4
    assert saved_bytes(lambda x: torch.native_dropout(x, 0.1, True)[0], ones(7, 10)) == 70


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_cpu_flash_attention_keeps_its_operands_and_one_statistic_per_row(dtype):
    # The saved tensors behind the prediction for fused attention, one by one: grouped keys and values are not
    # repeated.
    query, key, value = (ones(3, heads, 14, 8, dtype=dtype) for heads in (6, 2, 2))
    kept = saved_storages(
        lambda q: functional.scaled_dot_product_attention(q, key, value, is_causal=True, enable_gqa=True), query
    )
    size = dtype.itemsize
    assert sorted(storage.bytes for storage in kept) == sorted(
        [3 * 6 * 14 * 8 * size] * 2 + [3 * 2 * 14 * 8 * size] * 2 + [3 * 6 * 14 * 4]
    )


def test_fused_operations_have_the_gradients_of_the_plain_ones():
    torch.manual_seed(0)
    x, weight = torch.randn(5, 7, requires_grad=True), torch.randn(7, requires_grad=True)
    gate, up = torch.randn(5, 7, requires_grad=True), torch.randn(5, 7, requires_grad=True)
    upstream = torch.randn(5, 7)
    plain_norm = functional.rms_norm(x, (7,), weight, 1e-6)
    for fused, plain, inputs in (
        (FusedRmsNorm.apply(x, weight, 1e-6), plain_norm, (x, weight)),
        (FusedSwiGlu.apply(gate, up), functional.silu(gate) * up, (gate, up)),
    ):
        torch.testing.assert_close(fused, plain)
        for ours, theirs in zip(
            torch.autograd.grad(fused, inputs, upstream), torch.autograd.grad(plain, inputs, upstream), strict=True
        ):
            torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("fused", [False, True])
def test_both_rms_norms_are_torchs(fused):
    x = torch.randn(5, 7)
    torch.testing.assert_close(RmsNorm(7, fused=fused, dtype=torch.float32)(x), functional.rms_norm(x, (7,), eps=1e-6))


def test_every_set_of_kernels_computes_the_same_block():
    torch.manual_seed(0)
    blocks = [
        TransformerBlock(GATED, hidden=24, kernels=kernels, dropout=0.0, dtype=torch.float32) for kernels in KERNELS
    ]
    x = torch.randn(3, 14, 24)
    outputs = []
    for block in blocks:
        block.load_state_dict(blocks[0].state_dict())
        outputs.append(block(x))
    for output in outputs[1:]:
        torch.testing.assert_close(output, outputs[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("recompute", ["selective", "full"])
def test_recompute_changes_no_gradient(recompute):
    torch.manual_seed(0)
    kept, again = (
        TransformerBlock(GATED, hidden=24, kernels="eager", dropout=0.0, dtype=torch.float32, recompute=how)
        for how in ("none", recompute)
    )
    again.load_state_dict(kept.state_dict())
    x = torch.randn(3, 14, 24, requires_grad=True)
    for ours, theirs in zip(torch.autograd.grad(again(x).sum(), x), torch.autograd.grad(kept(x).sum(), x), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_refusals():
    with pytest.raises(ValueError, match="dropout=0.1 with kernels='sdpa': torch's CPU flash attention has no dropout"):
        TransformerBlock(GATED, hidden=24, kernels="sdpa", dropout=0.1, dtype=torch.float32)
    with pytest.raises(ValueError, match="recompute='some' is not known"):
        TransformerBlock(GATED, hidden=24, kernels="sdpa", dropout=0.0, dtype=torch.float32, recompute="some")
