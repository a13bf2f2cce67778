"""An exported graph, fused and as written: nodes, bytes and results; and the kernels that transformers launches."""

from collections import Counter
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import LlamaConfig, LlamaForCausalLM

from threeloops.inner_loop import fusion
from threeloops.measure.product_loop import exported
from threeloops.measure.product_loop.exported import Engine, SpelledOut
from threeloops.models import catalogue
from threeloops.product_loop import engine_step

ROWS, WIDTH = 96, 64


@pytest.fixture(scope="module")
def graph() -> bytes:
    return exported.exported(SpelledOut(width=WIDTH), torch.ones(4, WIDTH))


def test_the_optimiser_puts_two_nodes_in_place_of_a_dozen_and_the_result_stays(graph: bytes) -> None:
    torch.manual_seed(0)
    x = torch.randn(ROWS, WIDTH)
    plain, fused = Engine(graph, fuse=False), Engine(graph, fuse=True)
    assert len(plain.profile(x)) == 12
    assert [node.op for node in fused.profile(x)] == ["LayerNormalization", "Gelu"]
    with torch.no_grad():
        expected = SpelledOut(width=WIDTH)(x)
    torch.testing.assert_close(plain(x), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(fused(x), expected, rtol=1e-4, atol=1e-5)


def test_the_engine_moves_the_bytes_that_the_formula_says(graph: bytes) -> None:
    """Two nodes, each a chain: what stays between their steps is not moved."""
    x = torch.ones(ROWS, WIDTH)
    whole, row = x.numel() * 4, WIDTH * 4
    sizes = {"x": whole, "weight": row, "bias": row, "normed": whole, "out": whole}
    chain = [
        fusion.Operation("normed", ("x", "weight", "bias")),
        fusion.Operation("out", ("normed",)),
    ]
    moved = sum(node.moved_bytes for node in Engine(graph, fuse=True).profile(x))
    assert moved == fusion.separate_bytes(chain, sizes=sizes)


class Kernels(TorchDispatchMode):
    """Counts the operations that run a kernel: views run none."""

    def __init__(self) -> None:
        super().__init__()
        self.count: Counter[str] = Counter()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not function.is_view and function.overloadpacket.__name__ != "_unsafe_view":
            self.count[function.overloadpacket.__name__] += 1
        return function(*args, **(kwargs or {}))


def kernels_of_a_decode_step(layers: int) -> int:
    config = LlamaConfig(
        hidden_size=64,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=96,
        vocab_size=50,
        attn_implementation="sdpa",
    )
    model = LlamaForCausalLM(config).to(torch.bfloat16).eval()
    with torch.no_grad():
        past = model(torch.ones(1, 9, dtype=torch.int64), use_cache=True).past_key_values
        with Kernels() as kernels:
            model(torch.ones(1, 1, dtype=torch.int64), past_key_values=past, use_cache=True)
    return kernels.count.total()


def test_code_without_fusion_launches_as_many_kernels_a_layer_as_the_formula_counts() -> None:
    counted = kernels_of_a_decode_step(3) - kernels_of_a_decode_step(2)
    switches = engine_step.Switches(precision="bf16", fused=False, captured=False)
    ops = engine_step.launched(catalogue.model("llama-3-8b"), switches, batch=1, context=9)
    layers = catalogue.model("llama-3-8b").groups[0][1]
    assert counted == sum(op.count for op in ops if op.group is not None) / layers
