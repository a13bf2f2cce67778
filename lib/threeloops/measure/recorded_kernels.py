"""Recorded kernels: for every case of the recording suite, the torch call that does it on this machine, or the reason
why this machine cannot.

>>> case = Case(kind="gemm", dtype="fp32", sizes={"m": 2, "n": 3, "k": 4})
>>> call(case, device="cpu")().shape
torch.Size([2, 3])
"""

import importlib.util
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from threeloops.facts.recorded_cases import Case
from threeloops.inner_loop.prediction_error import decode_layer
from threeloops.measure.product_loop.decode_step import DecodeStep

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
FP8_CAPABILITY = (8, 9)  # Ada, Hopper and later
BF16_CAPABILITY = (8, 0)

Call = Callable[[], object]


class Skipped(Exception):
    """This machine does not run the case; the message says why."""


def call(case: Case, *, device: str) -> Call:
    """One call of the case, on operands that are already there.

    Raises:   Skipped, with the reason in words
    """
    if device == "cuda" and case.dtype == "bf16" and torch.cuda.get_device_capability() < BF16_CAPABILITY:
        raise Skipped("this GPU has no bf16 units")
    return BUILDERS[case.kind](case, device)


def _copy(case: Case, device: str) -> Call:
    source = torch.ones(case.sizes["bytes"] // 4, device=device)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def _triad(case: Case, device: str) -> Call:
    b, c = (torch.ones(case.sizes["bytes"] // 4, device=device) for _ in range(2))
    a = torch.empty_like(b)
    return lambda: torch.add(b, c, alpha=3.0, out=a)


def _softmax(case: Case, device: str) -> Call:
    x = torch.randn(case.sizes["rows"], case.sizes["width"], device=device)
    out = torch.empty_like(x)
    return lambda: torch.softmax(x, dim=-1, out=out)


def _rmsnorm(case: Case, device: str) -> Call:
    x = torch.randn(case.sizes["rows"], case.sizes["width"], device=device)
    weight = torch.ones(case.sizes["width"], device=device)
    return lambda: functional.rms_norm(x, weight.shape, weight)


def _gemm(case: Case, device: str) -> Call:
    m, n, k = (case.sizes[size] for size in ("m", "n", "k"))
    if case.dtype == "fp8":
        return _fp8_gemm(m, n, k, device)
    a, b = (torch.randn(shape, device=device).to(DTYPES[case.dtype]) for shape in ((m, k), (k, n)))
    out = torch.empty(m, n, dtype=a.dtype, device=device)
    return lambda: torch.mm(a, b, out=out)


def _fp8_gemm(m: int, n: int, k: int, device: str) -> Call:
    if device == "cpu":
        raise Skipped(
            "torch multiplies 8-bit numbers on a CPU by a reference loop, which says nothing about the machine"
        )
    if torch.cuda.get_device_capability() < FP8_CAPABILITY:
        raise Skipped("this GPU has no FP8 units")
    a = torch.randn(m, k, device=device).to(torch.float8_e4m3fn)
    # the second operand column by column, as the unit reads it
    b = torch.randn(n, k, device=device).to(torch.float8_e4m3fn).t()
    one = torch.ones((), device=device)
    return lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def _needs_triton(device: str) -> None:
    if device == "cpu":
        raise Skipped("a Triton kernel; compiled, Triton needs a GPU")
    if importlib.util.find_spec("triton") is None:
        raise Skipped("a Triton kernel; Triton is not installed here")


def _saxpy(case: Case, device: str) -> Call:
    _needs_triton(device)
    from threeloops.measure import triton_kernels

    x, y = (torch.ones(case.sizes["elements"], device=device) for _ in range(2))
    return lambda: triton_kernels.saxpy(x, y, 1e-6, load_bits=case.sizes["load_bits"])


def _tiled_gemm(case: Case, device: str) -> Call:
    _needs_triton(device)
    from threeloops.measure import triton_kernels

    m, n, k = (case.sizes[size] for size in ("m", "n", "k"))
    a, b = (torch.randn(shape, device=device).to(DTYPES[case.dtype]) for shape in ((m, k), (k, n)))
    return lambda: triton_kernels.tiled_gemm(a, b, tile=case.sizes["tile"])


def _attention(case: Case, device: str) -> Call:
    shape = tuple(case.sizes[size] for size in ("batch", "heads", "tokens", "head_dim"))
    q, k, v = (torch.randn(shape, device=device).to(DTYPES[case.dtype]) for _ in range(3))
    fused = case.kind == "attention_fused"
    if fused and device == "cuda" and case.dtype == "fp32":
        raise Skipped("torch's FlashAttention on a GPU takes 16-bit numbers only")

    def attention() -> Tensor:
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION if fused else SDPBackend.MATH):
            return functional.scaled_dot_product_attention(q, k, v)

    return attention


def _launch(case: Case, device: str) -> Call:
    number, operations = torch.zeros(1, device=device), case.sizes["operations"]

    def launches() -> None:
        for _ in range(operations):
            number.add_(1.0)

    return launches


def _decode(case: Case, device: str) -> Call:
    sizes = {name: case.sizes[name] for name in ("layers", "hidden", "batch", "context")}
    if case.kind == "decode_graph" and device == "cpu":
        raise Skipped("a CUDA graph; a CPU has no launches to save")
    step = DecodeStep(decode_layer(case), **sizes, dtype=DTYPES[case.dtype], device=device)
    x = torch.randn(sizes["batch"], sizes["hidden"], device=device).to(DTYPES[case.dtype])
    if case.kind == "decode_compiled":
        compiled = torch.compile(step)
        compiled(x)  # compiles now, so that a machine without a compiler is skipped and not timed
        return lambda: compiled(x)
    return (lambda: step(x)) if case.kind == "decode_eager" else _graph(step, x)


def _graph(step: DecodeStep, x: Tensor) -> Call:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # once outside the graph: libraries set themselves up on first use
        step(x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(x)
    return graph.replay


BUILDERS: dict[str, Callable[[Case, str], Call]] = {
    "copy": _copy,
    "triad": _triad,
    "softmax": _softmax,
    "rmsnorm": _rmsnorm,
    "gemm": _gemm,
    "saxpy": _saxpy,
    "tiled_gemm": _tiled_gemm,
    "attention_unfused": _attention,
    "attention_fused": _attention,
    "launch": _launch,
    "decode_eager": _decode,
    "decode_compiled": _decode,
    "decode_graph": _decode,
}
