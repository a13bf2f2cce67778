"""Recorded work: the kernels of every recorded case, as FLOPs and bytes, and the layers of those that run a model.

>>> product = Case(kind="gemm_graph", dtype="bf16", sizes={"m": 8, "n": 8, "k": 8, "calls": 2})
>>> [work.flops for work in works(product)]
[1024, 1024]
"""

from typing import Any

from threeloops import dtypes
from threeloops.facts.recorded_cases import Case
from threeloops.models import transformer
from threeloops.models.architecture import Attention, DenseMlp, Layer
from threeloops.models.forward_step import ForwardStep
from threeloops.operations import kernels
from threeloops.operations.roofline import Work

INT4_GROUP = 128
GOLDEN = 0.6180339887498949
WARPS_PER_SM, SECTOR_BYTES = 64, 32
VECTORS = {
    "softmax": kernels.softmax,
    "rmsnorm": kernels.rmsnorm,
    "layernorm_fused": kernels.layernorm,
    "layernorm_compiled": kernels.layernorm,
}


def matmul_of(case: Case) -> Work:
    m, n, k = (case.sizes[size] for size in ("m", "n", "k"))
    return kernels.gemm(m=m, n=n, k=k, bytes_per_element=dtypes.bytes_per_element(case.dtype))


def works(case: Case) -> list[Work]:
    """The kernels of a case that multiplies no transformer layers, in order."""
    sizes, element = case.sizes, dtypes.bytes_per_element(case.dtype)
    if case.kind in ("copy", "triad"):
        flops, inputs = (0, 1) if case.kind == "copy" else (2, 2)
        return [
            kernels.elementwise(
                elements=int(sizes["bytes"] // element),
                flops_per_element=flops,
                inputs=inputs,
                bytes_per_element=element,
            )
        ]
    if case.kind == "saxpy":
        return [
            kernels.elementwise(elements=sizes["elements"], flops_per_element=2, inputs=2, bytes_per_element=element)
        ]
    if case.kind in VECTORS:
        return [VECTORS[case.kind](rows=sizes["rows"], width=sizes["width"], bytes_per_element=element)]
    if case.kind == "layernorm_steps":
        return _layernorm_steps(sizes["rows"], sizes["width"], element)
    if case.kind in ("gemm", "gemm_long", "gemm_zeros", "tiled_gemm") or case.kind.startswith("ladder"):
        return [matmul_of(case)]  # however often a kernel fetches its operands: what comes again may come from the L2
    if case.kind == "gemm_graph":
        return [matmul_of(case)] * sizes["calls"]
    if case.kind == "gemm_int4":
        # a scale and a zero for each group of weights, in the activations' format
        weight = dtypes.bytes_per_element("int4") + 2 * element / INT4_GROUP
        rows = kernels.gemm(
            m=sizes["m"], n=sizes["n"], k=sizes["k"], bytes_per_element=element, weight_bytes_per_element=weight
        )
        return [rows]
    if case.kind.startswith("experts"):
        return [_experts(case, element)]
    if case.kind.startswith("sample"):
        return [Work(flops=0, moved_bytes=sizes["rows"] * sizes["width"] * element)]
    if case.kind == "inflight":
        return [Work(flops=0, moved_bytes=sizes["bytes"])]
    if case.kind == "strided":  # a sector at most for every number
        sectors = sizes["reads"] * min(1.0, sizes["stride"] * element / SECTOR_BYTES)
        return [Work(flops=0, moved_bytes=sectors * SECTOR_BYTES)]
    return _attention(case, element)


def _experts(case: Case, element: float) -> Work:
    """Gate, up and down of every routed token; of the weights, those of the experts that have any."""
    sizes = case.sizes
    touched = min(sizes["experts"], sizes["tokens"] * sizes["top_k"])
    weights = 3 * sizes["hidden"] * sizes["intermediate"]
    return Work(
        flops=2 * sizes["tokens"] * sizes["top_k"] * weights,
        moved_bytes=(touched * weights + 2 * sizes["tokens"] * sizes["hidden"]) * element,
    )


def _layernorm_steps(rows: int, width: int, element: float) -> list[Work]:
    """Nine kernels: two means over every row, five operations on every number, two on one number a row."""
    mean = Work(flops=rows * width, moved_bytes=rows * (width + 1) * element)
    # second operands are a number a row or a column, which a cache holds
    each, small = (
        kernels.elementwise(elements=elements, flops_per_element=1, inputs=1, bytes_per_element=element)
        for elements in (rows * width, rows)
    )
    return [mean, each, each, mean, small, small, each, each, each]


def _attention(case: Case, element: float) -> list[Work]:
    sizes, way = case.sizes, case.kind.removeprefix("attention_")
    shape: dict[str, Any] = {
        "batch": sizes["batch"],
        "num_heads": sizes["heads"],
        "head_dim": sizes["head_dim"],
        "query_tokens": sizes["tokens"],
        "context_tokens": sizes["tokens"],
    }
    if way == "unfused":
        apart = kernels.unfused_attention(
            **shape, num_kv_heads=sizes["heads"], causal="full", bytes_per_element=element
        )
        return [apart.scores, apart.softmax, apart.values]
    causal = "full" if way == "fused" else "exact"
    forward = kernels.attention(
        **shape, num_kv_heads=sizes["heads"], causal=causal, fused=True, bytes_per_element=element
    )
    if not way.endswith("backward"):
        return [forward]
    # read Q, K, V, the output and its gradient, write three gradients: twice what the forward pass moves
    flops = kernels.attention_backward_flops(**shape, causal=causal, recompute="scores")
    return [Work(flops=flops, moved_bytes=2 * forward.moved_bytes)]


def decode_layer(case: Case) -> Layer:
    """The transformer layer of a recorded decode step: grouped-query attention, gated MLP, two RMSNorms."""
    attention = Attention(
        num_heads=case.sizes["heads"], num_kv_heads=case.sizes["kv_heads"], head_dim=case.sizes["head_dim"]
    )
    mlp = DenseMlp(intermediate=case.sizes["intermediate"], gated=True, activation="silu")
    return Layer(attention=attention, mlp=mlp, norm="rmsnorm", num_norms=2)


def loop_answers(case: Case) -> list[int]:
    """Tokens of every answer of a recorded loop, from half the longest to the longest, so spread that few requests end
    together.
    """
    longest = case.sizes["answer"]
    return [longest - int(longest / 2 * (place * GOLDEN % 1)) for place in range(1, case.sizes["requests"] + 1)]


def train_layer(case: Case) -> Layer:
    """The transformer layer of a recorded training step: GPT-2's."""
    hidden, heads = case.sizes["hidden"], case.sizes["heads"]
    attention = Attention(num_heads=heads, num_kv_heads=heads, head_dim=hidden // heads)
    mlp = DenseMlp(intermediate=4 * hidden, gated=False, activation="gelu")
    return Layer(attention=attention, mlp=mlp, norm="layernorm", num_norms=2)


def train_flops(case: Case) -> float:
    """FLOPs of a recorded training step: all products forward, and twice as many backward."""
    sizes = case.sizes
    step = ForwardStep(
        phase="prefill",
        batch=sizes["batch"],
        sequence=sizes["tokens"],
        causal="exact",
        fused_attention=True,
        logits="all",
        bytes_per_element=dtypes.bytes_per_element(case.dtype),
    )
    ops = transformer.layer_ops(train_layer(case), hidden=sizes["hidden"], rotary=False, step=step) * sizes["layers"]
    head = 2 * sizes["batch"] * sizes["tokens"] * sizes["hidden"] * sizes["vocabulary"]
    return 3 * (transformer.total(ops, unit="matrix").flops + head)
