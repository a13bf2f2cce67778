"""FLOPs of recurrent layers: against transformers' own classes as torch counts them, and against scans that count
themselves.
"""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_configs import small
from tests.models import recurrent_scans
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.qwen3_5_moe import modeling_qwen3_5_moe
from transformers.models.qwen3_next import modeling_qwen3_next

from threeloops.measure.inner_loop.flops import counted_flops
from threeloops.models import catalogue
from threeloops.models.forward_step import MATRIX, ForwardStep
from threeloops.models.hf_config import from_hf_config
from threeloops.models.model_flops import forward_flops, six_n_corrections, training_flops
from threeloops.models.parameters import model_parameters
from threeloops.models.recurrent_layers import DeltaState, StateSpace
from threeloops.models.recurrent_ops import recurrent_ops
from threeloops.models.transformer import model_ops, total
from threeloops.operations import kernels
from threeloops.operations.scan_kernels import delta_scan_flops, state_scan_flops

torch.set_num_threads(1)
BATCH = 3
STEP = {"batch": BATCH, "causal": "full"}
# Chunks of other lengths than the classes' own, so that a short sequence has several; gated delta net's is a constant
# of its code. Widths of experts are multiples of 4: torch's grouped product takes no others.
CONFIGS = {
    "qwen3_next": (modeling_qwen3_next, {"moe_intermediate_size": 28}, 150),
    "qwen3_5_moe_text": (modeling_qwen3_5_moe, {"moe_intermediate_size": 28}, 150),
    "nemotron_h": (None, {"chunk_size": 16, "moe_intermediate_size": 28}, 37),
    "granitemoehybrid": (None, {"mamba_chunk_size": 16, "intermediate_size": 72}, 37),
}


def built(model_type, monkeypatch):
    """transformers' model in eager attention, ours, and the tokens of a sequence."""
    module, changes, tokens = CONFIGS[model_type]
    if module:
        # As code that is exported has it: the inverse times keys and values, in products that torch's counter knows.
        monkeypatch.setattr(module, "is_torchdynamo_exporting", lambda: True)
    config = small(model_type, **changes)
    made = AutoConfig.for_model(**config, attn_implementation="eager")
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(made).train(), from_hf_config(config), tokens


def recurrent(model):
    return [
        (layer.attention, count)
        for layer, count in model.groups
        if isinstance(layer.attention, DeltaState | StateSpace)
    ]


def beside(model, tokens):
    """What transformers' code computes in products and the formulas leave out or share, per forward pass."""
    extra = 0
    for layer, count in recurrent(model):
        if isinstance(layer, StateSpace):
            chunks = -(-tokens // layer.chunk)
            each = layer.scan_flops(tokens=tokens, causal="full")
            alone = replace(layer, groups=layer.num_heads).scan_flops(tokens=tokens, causal="full")
            passing = 2 * (chunks + 1) ** 2 * layer.state_elements  # every chunk's state to every later one
            extra += count * BATCH * (alone - each + passing)
    return extra


def products(counted):
    """What torch counted, the filters of short convolutions aside."""
    return sum(flops for operator, flops in counted.by_operator if "convolution" not in operator)


@pytest.mark.parametrize("model_type", CONFIGS)
def test_a_training_step_is_what_torch_counts_on_the_real_class(model_type, monkeypatch):
    real, model, tokens = built(model_type, monkeypatch)
    ids = torch.randint(0, model.vocab, (BATCH, tokens))
    with torch.no_grad():
        once = counted_flops(lambda: real(ids, use_cache=False))
    forward = forward_flops(model, **STEP, sequence=tokens, logits="all")
    assert forward.scans > 0
    assert products(once) == forward.total + beside(model, tokens)

    step = counted_flops(lambda: real(ids, use_cache=False).logits.sum().backward())
    # The first chunk's matrix is zeros: the two products that read it have no gradient for it. What the last chunk
    # writes is read by nobody: that product has no gradient at all.
    empty = sum(
        count * BATCH * 8 * layer.chunk * layer.state_elements
        for layer, count in recurrent(model)
        if isinstance(layer, DeltaState)
    )
    trained = training_flops(model, **STEP, sequence=tokens, recompute="none")
    assert trained.model == 3 * forward.total
    assert products(step) == trained.model + 3 * beside(model, tokens) - empty
    again = training_flops(model, **STEP, sequence=tokens, recompute="full")
    assert again.recomputed == forward.total - forward.head


@pytest.mark.parametrize("model_type", CONFIGS)
def test_the_short_convolution_is_what_torch_counts(model_type, monkeypatch):
    real, model, tokens = built(model_type, monkeypatch)
    with torch.no_grad():
        counted = counted_flops(lambda: real(torch.zeros(BATCH, tokens, dtype=torch.long), use_cache=False))
    ops = [op for op in model_ops(model, prefill(tokens)) if op.name == "convolution"]
    silu = kernels.ACTIVATION_FLOPS["silu"]
    channels = sum(count * layer.conv_channels for layer, count in recurrent(model))
    filters = total(ops).flops - BATCH * tokens * channels * silu
    # Filters also run over the padding in front and behind, and what comes of it is cut off.
    width = recurrent(model)[0][0].conv_entries
    assert sum(flops for operator, flops in counted.by_operator if "convolution" in operator) == pytest.approx(
        filters * (tokens + width - 1) / tokens
    )


def prefill(tokens, **changes):
    return ForwardStep(
        phase="prefill",
        batch=BATCH,
        sequence=tokens,
        causal="full",
        fused_attention=True,
        logits="all",
        bytes_per_element=2,
        routing="uniform",
        **changes,
    )


@pytest.mark.parametrize("key", ["qwen3-next-80b-a3b", "nemotron-h-56b"])
def test_the_table_of_operations_adds_up_to_the_model_flops(key):
    model = catalogue.model(key)
    forward = forward_flops(model, **STEP, sequence=2048, logits="all")
    assert total(model_ops(model, prefill(2048)), unit=MATRIX).flops == pytest.approx(forward.total)


def test_six_n_of_a_hybrid_ends_at_its_training_flops():
    model = catalogue.model("nemotron-h-56b")
    step = training_flops(model, batch=1, sequence=8192, causal="half", recompute="none")
    for counted in (model_parameters(model).total, model_parameters(model).non_embedding):
        corrected = six_n_corrections(model, num_parameters=counted, sequence=8192, causal="half")
        assert corrected.total == pytest.approx(step.model / step.tokens)


# ---- scans that count themselves ---------------------------------------------------------------


def drawn(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("seed", range(20))
def test_gated_delta_net_counted(seed):
    rng = random.Random(seed)
    tokens, key, value, chunk = (rng.randrange(2, most) for most in (23, 7, 9, 8))
    q, k, v = drawn(seed, tokens, key), drawn(seed + 1, tokens, key) / key, drawn(seed + 2, tokens, value)
    gates = {"decay": np.exp(-abs(drawn(seed + 3, tokens))), "write": 1 / (1 + np.exp(drawn(seed + 4, tokens)))}
    layer = DeltaState(key_heads=1, value_heads=1, key_head_dim=key, value_head_dim=value, conv_entries=4, chunk=chunk)
    alone = recurrent_scans.delta_by_token(q, k, v, **gates)
    chunked = recurrent_scans.delta_by_chunk(q, k, v, **gates, chunk=chunk)
    np.testing.assert_allclose(chunked.outputs[:tokens], alone.outputs, atol=1e-9)
    assert chunked.flops == layer.scan_flops(tokens=tokens, causal="full")
    widths = {"value_heads": 1, "key_head_dim": key, "value_head_dim": value, "chunk": chunk}
    assert chunked.flops == delta_scan_flops(**widths, tokens=tokens, causal="full")
    assert alone.flops == tokens * layer.update_flops
    whole = replace(prefill(tokens), batch=1)
    for phase, counted in (("prefill", chunked.flops), ("decode", alone.flops / tokens)):
        ops = {op.name: op.work for op in recurrent_ops(layer, hidden=48, step=replace(whole, phase=phase))}
        assert ops["state_scan" if phase == "prefill" else "state_update"].flops == counted


@pytest.mark.parametrize("seed", range(20))
def test_mamba_2_counted(seed):
    rng = random.Random(seed)
    tokens, heads, width, state, chunk = (rng.randrange(2, most) for most in (23, 5, 7, 9, 8))
    c, b, inputs = drawn(seed, tokens, state), drawn(seed + 1, tokens, state), drawn(seed + 2, tokens, heads, width)
    decay = np.exp(-abs(drawn(seed + 3, tokens, heads)))
    layer = StateSpace(
        num_heads=heads,
        head_dim=width,
        state_dim=state,
        groups=1,
        conv_entries=4,
        conv_bias=True,
        bias=False,
        chunk=chunk,
    )
    alone = recurrent_scans.mamba_by_token(c, b, inputs, decay=decay)
    chunked = recurrent_scans.mamba_by_chunk(c, b, inputs, decay=decay, chunk=chunk)
    np.testing.assert_allclose(chunked.outputs[:tokens], alone.outputs, atol=1e-9)
    assert chunked.flops == layer.scan_flops(tokens=tokens, causal="full")
    widths = {"num_heads": heads, "head_dim": width, "state_dim": state, "groups": 1, "chunk": chunk}
    assert chunked.flops == state_scan_flops(**widths, tokens=tokens, causal="full")
    assert alone.flops == tokens * layer.update_flops


def test_a_recurrent_update_in_decode_moves_its_state_twice():
    layer = DeltaState(key_heads=2, value_heads=6, key_head_dim=5, value_head_dim=7, conv_entries=4)
    step = replace(prefill(900), phase="decode")
    update = next(op for op in recurrent_ops(layer, hidden=48, step=step) if op.name == "state_update")
    passed = 2 * BATCH * (layer.conv_channels + 42)
    assert update.work.moved_bytes == passed + 2 * BATCH * 4 * 6 * 5 * 7
    assert update == next(
        op for op in recurrent_ops(layer, hidden=48, step=replace(step, sequence=9)) if op.name == "state_update"
    )


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_a_short_convolution_moves_its_tensors(phase):
    """Torch's own, a filter for each channel: inputs, outputs and filters; a token alone brings what was kept, in and
    out. The gate's silu is the convolution's, and one product more.
    """
    layer = DeltaState(key_heads=2, value_heads=6, key_head_dim=5, value_head_dim=7, conv_entries=4)
    step = replace(prefill(900), phase=phase)
    ops = {op.name: op.work for op in recurrent_ops(layer, hidden=48, step=step)}
    tokens, channels = (900 if phase == "prefill" else 1), 2 * 2 * 5 + 6 * 7
    conv = torch.nn.Conv1d(channels, channels, 4, groups=channels, bias=False, padding=3)
    given = torch.zeros(BATCH, channels, tokens)
    made = conv(given)[..., :tokens]
    kept = 2 * torch.zeros(BATCH, channels, 4).numel() if phase == "decode" else 0
    moved = given.numel() + conv.weight.numel() + made.numel() + kept
    assert ops["convolution"].moved_bytes == step.bytes_per_element * moved
    silu = ops["convolution"].flops / made.numel() - 2 * 4
    assert ops["output_gate"].flops == (silu + 1) * BATCH * tokens * 6 * 7


def test_a_scan_writes_its_last_state_once():
    layer = DeltaState(key_heads=2, value_heads=6, key_head_dim=5, value_head_dim=7, conv_entries=4)
    step = prefill(900)
    scan = next(op for op in recurrent_ops(layer, hidden=48, step=step) if op.name == "state_scan")
    passed = step.bytes_per_element * BATCH * 900 * (layer.conv_channels + 42)
    assert scan.work.moved_bytes == passed + BATCH * 4 * 6 * 5 * 7  # matrices in fp32
