"""Recorded kernels: for every case of the recording suite, the torch call that does it on this machine, or the reason
why this machine cannot.

>>> case = Case(kind="gemm", dtype="fp32", sizes={"m": 2, "n": 3, "k": 4})
>>> call(case, device="cpu")().shape
torch.Size([2, 3])
"""

import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from threeloops.facts.recorded_cases import SAMPLED, Case
from threeloops.measure import recorded_models, recorded_threads
from threeloops.measure.recorded_needs import DTYPES, Call, Skipped, graph, needs_gpu, needs_graphs, needs_triton

FP8_CAPABILITY = (8, 9)  # Ada, Hopper and later
AMPERE = (8, 0)  # from here on there are bf16 and tf32 units
EPSILON = 1e-5
NARROW_ON_CPU = "torch multiplies 8-bit numbers on a CPU by a reference loop, which says nothing about the machine"
GROUP, INNER_TILES = 128, 8  # of 4-bit weights: numbers that share a scale, and the order in which torch packs them


def call(case: Case, *, device: str) -> Call:
    """One call of the case, on operands that are already there.

    Raises:   Skipped, with the reason in words
    """
    if device == "cuda" and case.dtype in ("bf16", "tf32") and torch.cuda.get_device_capability() < AMPERE:
        raise Skipped(f"this GPU has no {case.dtype} units")
    if device == "cpu" and case.dtype == "tf32":
        raise Skipped("TF32 is a format of GPUs' tensor cores")
    # what else decides about fp32 products is a case of its own
    torch.backends.cuda.matmul.allow_tf32 = case.dtype == "tf32"
    return BUILDERS[case.kind](case, device)


def _copy(case: Case, device: str) -> Call:
    source = torch.ones(case.sizes["bytes"] // 4, device=device)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def _triad(case: Case, device: str) -> Call:
    b, c = (torch.ones(case.sizes["bytes"] // 4, device=device) for _ in range(2))
    a = torch.empty_like(b)
    return lambda: torch.add(b, c, alpha=3.0, out=a)


def _reread(case: Case, device: str) -> Call:
    needs_triton(device)
    from threeloops.measure import triton_kernels

    x = torch.ones(case.sizes["bytes"] // 4, device=device)
    return lambda: triton_kernels.reread(x, read_bytes=case.sizes["read_bytes"])


def _recopy(case: Case, device: str) -> Call:
    source = torch.ones(case.sizes["bytes"] // 8, device=device)  # half of the working set, 4 bytes a number
    target = torch.empty_like(source)
    copies = max(1, case.sizes["moved_bytes"] // case.sizes["bytes"])

    def again() -> None:
        for _ in range(copies):
            target.copy_(source)

    return again if device == "cpu" else graph(again)


def _softmax(case: Case, device: str) -> Call:
    x = torch.randn(case.sizes["rows"], case.sizes["width"], device=device)
    out = torch.empty_like(x)
    return lambda: torch.softmax(x, dim=-1, out=out)


def _rmsnorm(case: Case, device: str) -> Call:
    x = torch.randn(case.sizes["rows"], case.sizes["width"], device=device)
    weight = torch.ones(case.sizes["width"], device=device)
    return lambda: functional.rms_norm(x, weight.shape, weight)


def _layernorm(case: Case, device: str) -> Call:
    width = case.sizes["width"]
    x = torch.randn(case.sizes["rows"], width, device=device)
    weight, bias = (torch.randn(width, device=device) for _ in range(2))
    if case.kind == "layernorm_fused":
        return lambda: functional.layer_norm(x, (width,), weight, bias, EPSILON)
    run = torch.compile(layernorm_steps) if case.kind == "layernorm_compiled" else layernorm_steps
    run(x, weight, bias)  # compiles now, so that a machine without a compiler is skipped and not timed
    return lambda: run(x, weight, bias)


def layernorm_steps(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """LayerNorm after its definition: nine kernels, two of them on a number a row."""
    centred = x - x.mean(-1, keepdim=True)
    normal = centred / (centred.square().mean(-1, keepdim=True) + EPSILON).sqrt()
    return normal * weight + bias


def _gemm(case: Case, device: str) -> Call:
    m, n, k = (case.sizes[size] for size in ("m", "n", "k"))
    if case.dtype in ("fp8", "int8"):
        return (_fp8_gemm if case.dtype == "fp8" else _int8_gemm)(m, n, k, device)
    made = torch.zeros if case.kind == "gemm_zeros" else torch.randn
    a, b = (made(shape, device=device).to(DTYPES[case.dtype]) for shape in ((m, k), (k, n)))
    out = torch.empty(m, n, dtype=a.dtype, device=device)
    return lambda: torch.mm(a, b, out=out)


def _gemm_graph(case: Case, device: str) -> Call:
    needs_graphs(device)
    once = _gemm(case, device)
    return graph(lambda: [once() for _ in range(case.sizes["calls"])])


def _gemm_long(case: Case, device: str) -> Call:
    """A card that multiplies without a pause grows warm, and its clock falls to what its power limit allows."""
    once, began = _gemm(case, device), time.perf_counter()
    while time.perf_counter() - began < case.sizes["seconds"]:
        for _ in range(20):
            once()
        if device == "cuda":
            torch.cuda.synchronize()
    return once


def _ladder(case: Case, device: str) -> Call:
    needs_gpu(device, "a kernel in CUDA C++")
    from threeloops.measure import cuda_kernels

    m, n, k = (case.sizes[size] for size in ("m", "n", "k"))
    a, b = (torch.randn(shape, device=device) for shape in ((m, k), (k, n)))
    run = cuda_kernels.product(case.kind.removeprefix("ladder_"))
    return lambda: run(a, b)


def _fp8_gemm(m: int, n: int, k: int, device: str) -> Call:
    if device == "cpu":
        raise Skipped(NARROW_ON_CPU)
    if torch.cuda.get_device_capability() < FP8_CAPABILITY:
        raise Skipped("this GPU has no FP8 units")
    a = torch.randn(m, k, device=device).to(torch.float8_e4m3fn)
    # the second operand column by column, as the unit reads it
    b = torch.randn(n, k, device=device).to(torch.float8_e4m3fn).t()
    one = torch.ones((), device=device)
    return lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def _int8_gemm(m: int, n: int, k: int, device: str) -> Call:
    if device == "cpu":
        raise Skipped(NARROW_ON_CPU)
    a, b = (torch.randint(-128, 128, shape, dtype=torch.int8, device=device) for shape in ((m, k), (n, k)))
    out = torch.empty(m, n, dtype=torch.int32, device=device)
    return lambda: torch._int_mm(a, b.t(), out=out)


def _int4_gemm(case: Case, device: str) -> Call:
    needs_gpu(device, "torch's matmul with packed weights of 4 bits")
    m, n, k = (case.sizes[size] for size in ("m", "n", "k"))
    pairs = torch.randint(256, (n, k // 2), dtype=torch.uint8, device=device)
    packed = torch.ops.aten._convert_weight_to_int4pack(pairs, INNER_TILES)
    scales = torch.randn(k // GROUP, n, 2, device=device).to(DTYPES[case.dtype])
    x = torch.randn(m, k, device=device).to(DTYPES[case.dtype])
    return lambda: torch.ops.aten._weight_int4pack_mm(x, packed, GROUP, scales)


def _saxpy(case: Case, device: str) -> Call:
    needs_triton(device)
    from threeloops.measure import triton_kernels

    x, y = (torch.ones(case.sizes["elements"], device=device) for _ in range(2))
    return lambda: triton_kernels.saxpy(x, y, 1e-6, load_bits=case.sizes["load_bits"])


def _tiled_gemm(case: Case, device: str) -> Call:
    needs_triton(device)
    from threeloops.measure import triton_kernels

    m, n, k = (case.sizes[size] for size in ("m", "n", "k"))
    a, b = (torch.randn(shape, device=device).to(DTYPES[case.dtype]) for shape in ((m, k), (k, n)))
    return lambda: triton_kernels.tiled_gemm(a, b, tile=case.sizes["tile"])


def _attention(case: Case, device: str) -> Call:
    shape = tuple(case.sizes[size] for size in ("batch", "heads", "tokens", "head_dim"))
    way = case.kind.removeprefix("attention_")
    if way.startswith("cudnn"):
        needs_gpu(device, "a kernel of cuDNN")
    if way != "unfused" and device == "cuda" and case.dtype == "fp32":
        raise Skipped("torch's FlashAttention on a GPU takes 16-bit numbers only")
    backend = {"unfused": SDPBackend.MATH, "cudnn": SDPBackend.CUDNN_ATTENTION}.get(
        way.removesuffix("_backward"), SDPBackend.FLASH_ATTENTION
    )
    q, k, v = (torch.randn(shape, device=device).to(DTYPES[case.dtype]) for _ in range(3))
    causal = way not in ("unfused", "fused")

    def attention() -> Tensor:
        with sdpa_kernel(backend):
            return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    if not way.endswith("_backward"):
        return attention
    inputs = [x.requires_grad_() for x in (q, k, v)]
    out = attention()
    gradient = torch.randn_like(out)
    return lambda: torch.autograd.grad(out, inputs, gradient, retain_graph=True)


def _launch(case: Case, device: str) -> Call:
    number, operations = torch.zeros(1, device=device), case.sizes["operations"]

    def launches() -> None:
        for _ in range(operations):
            number.add_(1.0)

    if case.kind == "launch":
        return launches
    needs_graphs(device)
    return graph(launches)


BUILDERS: dict[str, Callable[[Case, str], Call]] = {
    "copy": _copy,
    "triad": _triad,
    "reread": _reread,
    "recopy": _recopy,
    "softmax": _softmax,
    "rmsnorm": _rmsnorm,
    **dict.fromkeys(("layernorm_fused", "layernorm_steps", "layernorm_compiled"), _layernorm),
    "gemm": _gemm,
    "gemm_graph": _gemm_graph,
    "gemm_long": _gemm_long,
    "saxpy": _saxpy,
    "tiled_gemm": _tiled_gemm,
    **dict.fromkeys(("ladder_naive", "ladder_tiled", "ladder_registers"), _ladder),
    **dict.fromkeys(
        (
            "attention_unfused",
            "attention_fused",
            "attention_causal",
            "attention_cudnn",
            "attention_causal_backward",
            "attention_cudnn_backward",
        ),
        _attention,
    ),
    "launch": _launch,
    "launch_graph": _launch,
    "gemm_zeros": _gemm,
    "gemm_int4": _int4_gemm,
    "chase": recorded_threads.chase,
    "inflight": recorded_threads.inflight,
    "strided": recorded_threads.strided,
    "banks": recorded_threads.banks,
    "paths": recorded_threads.paths,
    **dict.fromkeys(
        ("copy_to_gpu", "copy_from_gpu", "copy_to_gpu_pageable", "copy_from_gpu_pageable"), recorded_threads.carried
    ),
    **dict.fromkeys(("train_eager", "train_compiled", "train_peak"), recorded_models.train),
    **dict.fromkeys(("decode_eager", "decode_compiled", "decode_graph"), recorded_models.decode),
    "prefill_eager": recorded_models.prefill,
    **dict.fromkeys(SAMPLED, recorded_models.loop),
    **dict.fromkeys(("experts_grouped", "experts_loop"), recorded_models.experts),
    **dict.fromkeys(("sample_greedy", "sample_top_p"), recorded_models.sample),
}
