"""LoRA, QLoRA and DoRA: counts that PEFT printed, codes and scales written down matrix by matrix, and what autograd
really keeps of frozen layers with adapters, of this book's own blocks and of transformers'.
"""

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn

from threeloops.measure.models.transformer_block import TransformerBlock
from threeloops.measure.training_loop.saved_tensors import saved_bytes
from threeloops.models.architecture import Attention, DenseMlp, Layer, Model, MoeMlp
from threeloops.models.catalogue import model
from threeloops.models.parameter_buckets import stage_buckets
from threeloops.training_loop.memory.activation_kernels import KERNELS
from threeloops.training_loop.updates.adapted_layers import Adapters, adapted_layer
from threeloops.training_loop.updates.adapted_memory import (
    adapted_memory,
    adapted_moments,
    frozen_bytes,
    largest_adapted_micro_batch,
    largest_adapted_sequence,
)
from threeloops.training_loop.updates.adapted_setup import AdapterTraining
from threeloops.training_loop.updates.adapters import ATTENTION, MLP, adapted_matrices, magnitude_parameters

ALL = ATTENTION + MLP
OF_TRANSFORMERS = dict(
    zip(ALL, ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"), strict=True)
)


def tuning(**how: object) -> AdapterTraining:
    usual: dict[str, object] = {
        "model": model("llama-2-7b"),
        "rank": 16,
        "targets": ALL,
        "base": "bf16",
        "recipe": "autocast",
        "bytes_per_element": 2,
        "kernels": "sdpa",
        "recompute": "none",
    }
    return AdapterTraining(**{**usual, **how})  # type: ignore[arg-type]


# --- what is trained, and what is frozen ---


@pytest.mark.parametrize(
    ("name", "rank", "targets", "printed", "of_all"),
    # What print_trainable_parameters of PEFT says of these, as many public notebooks show it.
    [
        ("llama-2-7b", 8, ("query", "value"), 4_194_304, 6_742_609_920),
        ("llama-2-7b", 64, ("query", "value"), 33_554_432, 6_771_970_048),
        ("llama-2-7b", 16, ALL, 39_976_960, 6_778_392_576),
        ("llama-3-8b", 16, ALL, 41_943_040, 8_072_204_288),
    ],
)
def test_peft_prints_as_many(name, rank, targets, printed, of_all):
    made = tuning(model=model(name), rank=rank, targets=targets)
    assert made.trained_parameters == printed
    assert stage_buckets(made.model, stage=0, pp=1).total + printed == of_all


def test_peft_prints_two_codes_as_one_parameter():
    """Of a model in four bits PEFT printed 3,540,389,888: two codes in a byte, tables and norms whole."""
    held = stage_buckets(model("llama-2-7b"), stage=0, pp=1)
    assert held.matrices / 2 + (held.total - held.matrices) + 39_976_960 == 3_540_389_888


def on_meta():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=256,
        intermediate_size=768,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=640,
    )
    with torch.device("meta"):
        return config, LlamaForCausalLM(config)


def written_bytes(base: str) -> int:
    """Bytes of the class's own tensors, its linear layers but the head written as bitsandbytes does: codes, scales of
    64 weights, and with nf4 scales of 256 of those.
    """
    total, (_, found) = 0, on_meta()
    for name, module in found.named_modules():
        if isinstance(module, nn.Linear) and name != "lm_head" and base != "bf16":
            codes = torch.empty(module.weight.numel() // 2, dtype=torch.uint8, device="meta")
            scales = torch.empty(module.weight.numel() // 64, dtype=torch.float32, device="meta")
            coded = (scales.to(torch.uint8), scales[::256]) if base == "nf4" else (scales,)
            total += codes.nbytes + sum(tensor.nbytes for tensor in coded)
        else:
            total += sum(2 * parameter.numel() for parameter in module.parameters(recurse=False))
    return total


def trained_parameters(rank: int, targets: tuple[str, ...]) -> int:
    """Values of A, B and a magnitude per output, made beside the class's own matrices."""
    total, (_, found) = 0, on_meta()
    for name, module in found.named_modules():
        if name.split(".")[-1] in {OF_TRANSFORMERS[target] for target in targets}:
            down = nn.Linear(module.in_features, rank, bias=False, device="meta")
            up = nn.Linear(rank, module.out_features, bias=False, device="meta")
            total += down.weight.numel() + up.weight.numel() + module.weight[:, 0].numel()
    return total


def small() -> Model:
    from threeloops.models.hf_config import from_hf_config

    return from_hf_config(on_meta()[0].to_dict() | {"architectures": ["LlamaForCausalLM"]}, name="small")


@pytest.mark.parametrize("base", ["bf16", "nf4", "nf4-single"])
def test_frozen_weights_take_the_bytes_that_are_written(base):
    made = tuning(model=small(), base=base)
    assert frozen_bytes(made, stage_buckets(made.model, stage=0, pp=1)) == written_bytes(base)


def test_magnitudes_are_as_many_as_outputs():
    for targets in (("query", "value"), ("down",), ALL):
        made = tuning(model=small(), rank=5, targets=targets, magnitudes=True)
        assert made.trained_parameters == trained_parameters(5, targets)
        assert magnitude_parameters(made.matrices) == trained_parameters(1, targets) - sum(
            count * (i + o) for i, o, count in made.matrices
        )


# --- what waits for the backward pass ---


class Adapted(nn.Module):
    """A frozen matrix with an adapter, in PEFT's order."""

    def __init__(self, frozen: nn.Linear, *, rank: int, dtype: torch.dtype, dropout: float, magnitudes: bool) -> None:
        super().__init__()
        self.frozen, self.dropout = frozen, dropout
        self.down = nn.Linear(frozen.in_features, rank, bias=False, dtype=dtype)
        self.up = nn.Linear(rank, frozen.out_features, bias=False, dtype=dtype)
        self.magnitude = nn.Parameter(torch.ones(frozen.out_features, dtype=dtype)) if magnitudes else None

    def forward(self, x):
        result = self.frozen(x)
        # native_dropout is what runs on a GPU: one byte a value
        given = x.to(self.down.weight.dtype)
        given = torch.native_dropout(given, self.dropout, True)[0] if self.dropout else given
        added = self.up(self.down(given))
        if self.magnitude is None:
            return (result + added * 2.0).to(result.dtype)
        base = result if self.frozen.bias is None else result - self.frozen.bias
        norm = torch.linalg.norm(self.frozen.weight + 2.0 * (self.up.weight @ self.down.weight).detach(), dim=1)
        scale = (self.magnitude / norm).view(1, -1)
        return (result + (scale - 1) * base + scale * added * 2.0).to(result.dtype)


def adapt(
    block: nn.Module, places: dict[str, str], *, dtype: torch.dtype, rank: int = 5, dropout=0.0, magnitudes=False
):
    """Freeze a block and put adapters on some of its matrices: target -> the place of its matrix."""
    block.requires_grad_(False)
    for place in places.values():
        frozen = block.get_submodule(place)
        adapted = Adapted(frozen, rank=rank, dtype=dtype, dropout=dropout, magnitudes=magnitudes)
        block.set_submodule(place, adapted)
    return block


BF16, FP32 = torch.bfloat16, torch.float32
HOW = {
    "as wide as activations": (BF16, BF16, False),
    "fp32 under autocast": (BF16, FP32, True),
    "fp32 without autocast": (BF16, FP32, False),
    "all fp32": (FP32, FP32, False),
}
SETS = [("query", "value"), ("output",), ("gate", "down"), ALL]


def predicted_adapters(targets, dtype, trained, autocast, **how) -> Adapters:
    size = dtype.itemsize if autocast else trained.itemsize
    return Adapters(rank=5, targets=targets, bytes_per_element=size, own_copy=autocast, **how)


@pytest.mark.parametrize(("magnitudes", "dropout"), [(False, 0.0), (False, 0.1), (True, 0.0)])
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", ["eager", "sdpa"])
def test_a_frozen_llama_layer_of_transformers_with_adapters_saves_these_bytes(name, how, magnitudes, dropout):
    """Each way four times, with adapters on other matrices."""
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

    config = LlamaConfig(
        hidden_size=80,
        intermediate_size=112,
        num_attention_heads=10,
        num_key_value_heads=2,
        head_dim=8,
        attn_implementation=name,
    )
    dtype, trained, autocast = HOW[how]
    plain = LlamaDecoderLayer(config, 0).to(dtype).train()
    x = torch.randn(3, 14, 80, dtype=dtype, requires_grad=True)
    tables = LlamaRotaryEmbedding(config)(x, torch.arange(14)[None])
    future = torch.full((1, 1, 14, 14), float("-inf"), dtype=dtype).triu(1) if name == "eager" else None
    for targets in SETS:
        places = {
            target: f"{'self_attn' if target in ATTENTION else 'mlp'}.{OF_TRANSFORMERS[target]}" for target in targets
        }
        how_adapted = {"dropout": dropout, "magnitudes": magnitudes}
        block = adapt(copy.deepcopy(plain), places, dtype=trained, **how_adapted)
        with torch.autocast("cpu", BF16, enabled=autocast):
            measured = saved_bytes(
                lambda x, block=block: block(x, attention_mask=future, position_embeddings=tables), x, module=block
            )
        adapters = predicted_adapters(targets, dtype, trained, autocast, dropout=dropout > 0, magnitudes=magnitudes)
        predicted = adapted_layer(
            SWIGLU,
            adapters=adapters,
            hidden=80,
            sequence=14,
            micro_batch=3,
            bytes_per_element=dtype.itemsize,
            kernels=name,
            dropout=False,
        )
        beside = sum(table.nbytes for table in tables) + whatever_the_tokens_are(block, autocast)
        assert measured == predicted.total_bytes + beside, targets


def whatever_the_tokens_are(block: nn.Module, autocast: bool) -> int:
    """Autocast's copies of adapters wait too; with magnitudes so do the norm, the scale and the scale less one."""
    total = 0
    for module in block.modules():
        if isinstance(module, Adapted):
            total += 2 * (module.down.weight.numel() + module.up.weight.numel()) if autocast else 0
            if module.magnitude is not None:
                norm_bytes = 2 if autocast else module.up.weight.itemsize
                total += module.magnitude.numel() * (norm_bytes + 2 * module.magnitude.itemsize)
    return total


ATTENTIVE = Attention(num_heads=10, num_kv_heads=2, head_dim=8)
GATED = DenseMlp(intermediate=112, gated=True, activation="silu")
SWIGLU = Layer(attention=ATTENTIVE, mlp=GATED, norm="rmsnorm", num_norms=2)
PLAIN = Attention(num_heads=6, num_kv_heads=6, head_dim=8, qkv_bias=True, output_bias=True)


def plain_layer(activation: str) -> Layer:
    mlp = DenseMlp(intermediate=112, gated=False, activation=activation, bias=True)
    return Layer(attention=PLAIN, mlp=mlp, norm="layernorm", num_norms=2)


EXPERTS = MoeMlp(
    num_experts=7,
    top_k=3,
    expert=replace(GATED, intermediate=24),
    shared=replace(GATED, intermediate=40),
    shared_gate=True,
)
LAYERS = {
    **{name: plain_layer(name) for name in ("gelu", "relu", "gelu_new")},
    "swiglu, qk-norm, four norms": replace(SWIGLU, attention=replace(ATTENTIVE, qk_norm=True), num_norms=4),
    "experts": replace(SWIGLU, mlp=EXPERTS),
}
PLACES = {
    "query": "attention.query",
    "key": "attention.key",
    "value": "attention.value",
    "output": "attention.output",
    "down": "mlp.out",
}


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("layer_name", LAYERS)
def test_a_frozen_block_with_adapters_saves_exactly_these_bytes(layer_name, name, recompute):
    layer = LAYERS[layer_name]
    kernels, dropout = replace(KERNELS[name], small_tensors=True), 0.1 if KERNELS[name].attention == "explicit" else 0.0
    targets = ("query", "value") if layer_name == "experts" else ("key", "output", "down")
    for chosen in (targets, targets[:1]):
        block = TransformerBlock(layer, hidden=48, kernels=kernels, dropout=dropout, dtype=BF16, recompute=recompute)
        adapt(block, {target: PLACES[target] for target in chosen}, dtype=BF16)
        measured = saved_bytes(block, torch.randn(3, 14, 48, dtype=BF16, requires_grad=True))
        predicted = adapted_layer(
            layer,
            adapters=predicted_adapters(chosen, BF16, BF16, False),
            hidden=48,
            sequence=14,
            micro_batch=3,
            bytes_per_element=2,
            kernels=kernels,
            dropout=dropout > 0,
            recompute=recompute,
        )
        assert predicted.total_bytes == measured, chosen


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_a_whole_frozen_model_saves_what_is_predicted(recompute):
    """Layers, final norm, head and loss; the table is frozen, and its output requires a gradient, as PEFT has it."""
    layer = plain_layer("gelu")
    whole = Model(name="small", hidden=48, vocab=100, groups=((layer, 3),), tied_head=False, max_context=64)
    blocks = [
        adapt(
            TransformerBlock(layer, hidden=48, kernels="sdpa", dropout=0.0, dtype=BF16, recompute=recompute),
            {"query": PLACES["query"], "down": PLACES["down"]},
            dtype=BF16,
        )
        for _ in range(3)
    ]
    ends = nn.Sequential(nn.LayerNorm(48), nn.Linear(48, 100, bias=False, dtype=BF16)).requires_grad_(False)
    stack = nn.ModuleList([*blocks, ends])

    def forward(x):
        for part in stack:
            x = part(x)
        return nn.functional.cross_entropy(x.float().flatten(0, 1), torch.zeros(3 * 14, dtype=torch.int64))

    measured = saved_bytes(forward, torch.randn(3, 14, 48, dtype=BF16, requires_grad=True), module=stack)
    made = tuning(model=whole, rank=5, targets=("query", "down"), recipe="pure-bf16", recompute=recompute)
    found, _, _ = adapted_moments(made, micro_batch=3, sequence=14)
    # The loss keeps one more fp32 value.
    assert measured == found.layer_activations_bytes + found.embedding_bytes + found.head_bytes + 4


# --- a whole GPU ---


def test_qlora_holds_less_than_lora_and_both_less_than_everything():
    lora, qlora = (adapted_memory(tuning(base=base), micro_batch=1, sequence=512) for base in ("bf16", "nf4"))
    assert lora.total_bytes - qlora.total_bytes == pytest.approx(
        lora.frozen_bytes - qlora.frozen_bytes - qlora.dequantised_bytes
    )
    # 6,738,415,616 parameters in 16 bits; 6,476,005,376 of them in 4.127, as the paper says to three digits.
    assert lora.frozen_bytes == 2 * 6_738_415_616
    assert qlora.frozen_bytes == pytest.approx(6_476_005_376 * 4.127 / 8 + 2 * 262_410_240, rel=1e-4)
    # The largest matrix of a layer, 4,096 by 11,008, in 16 bits.
    assert qlora.dequantised_bytes in (0, 2 * 4096 * 11_008)
    assert qlora.moment == "backward" or not qlora.dequantised_bytes


def test_zero_shares_out_what_it_says():
    one, *stages = (adapted_memory(tuning(dp=4, zero_stage=zero, gathered_layers=2), micro_batch=1, sequence=64)
                    for zero in range(4))  # fmt: skip
    assert [held.adapters.optimiser_bytes * 4 for held in stages] == [one.adapters.optimiser_bytes] * 3
    assert stages[1].adapters.gradients_bytes * 4 == one.adapters.gradients_bytes
    assert stages[2].frozen_bytes * 4 == one.frozen_bytes
    # Two layers and both tables, whole: 2 × 202,383,360 + 2 × 32,000 × 4,096 parameters of two bytes.
    assert stages[2].gathered_bytes == 2 * (2 * 202_383_360 + 2 * 32_000 * 4096)
    assert not one.gathered_bytes


def test_the_largest_that_fits_fits_and_the_next_does_not():
    made, usable = tuning(base="nf4", recompute="full"), 24e9
    batch = largest_adapted_micro_batch(made, sequence=512, usable_bytes=usable)
    length = largest_adapted_sequence(made, micro_batch=2, usable_bytes=usable)
    held = [adapted_memory(made, micro_batch=size, sequence=512).total_bytes for size in (batch, batch + 1)]
    held += [adapted_memory(made, micro_batch=2, sequence=size).total_bytes for size in (length, length + 1)]
    assert held[0] <= usable < held[1]
    assert held[2] <= usable < held[3]


def test_layers_that_differ_are_counted_apart():
    """Gemma 2 has windows in half of its layers: as many adapters in both kinds."""
    gemma = model("gemma-2-9b")
    assert sum(count for *_, count in adapted_matrices(gemma, matrices=["query"])) == gemma.num_layers


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"base": "int3"}, "base='int3' is not known"),
        ({"base": "fp32"}, "must be as wide as activations"),
        ({"recipe": "megatron-muon"}, "treats hidden matrices and the rest differently"),
        ({"recipe": "fsdp2-mixed"}, "casts a unit before it gathers it, which is not counted for adapters"),
        ({"targets": ("gates",)}, "matrix='gates' is not known"),
        ({"rank": 0}, "rank=0"),
        ({"zero_stage": 3}, "gathered_layers must be stated"),
        ({"model": model("deepseek-v3")}, "not beside latent attention"),
        ({"magnitudes": True, "adapter_dropout": True}, "counted without dropout before adapters"),
        ({"cross_entropy": "none"}, "cross_entropy='none' is not known"),
    ],
)
def test_what_has_no_meaning_is_refused(how, told):
    with pytest.raises(ValueError, match=told):
        adapted_memory(tuning(**how), micro_batch=1, sequence=8)
