"""Recorded suite: which cases `threeloops record` measures on a kind of device, and how large the work of each is.

>>> [case.name for case in suite(device="cpu", quick=True) if case.kind == "launch"]
['launch-fp32-operations1000']
"""

from dataclasses import dataclass, replace

from threeloops import checks
from threeloops.facts.recorded_cases import DEVICES, KINDS, Case
from threeloops.units import GiB, KiB, MiB


def _case(kind: str, dtype: str, *sizes: int) -> Case:
    return Case(kind=kind, dtype=dtype, sizes=dict(zip(KINDS[kind], sizes, strict=True)))


def suite(*, device: str, quick: bool) -> tuple[Case, ...]:
    """Every case of the suite for a kind of device; `quick` ones take a few seconds on any machine and carry names of
    their own.

    A CPU is asked for what it can run at all or is refused by name; Triton kernels and 8-bit products are asked of
    both.
    """
    checks.one_of(DEVICES, device=device)
    if quick:
        return _cases(QUICK)
    return _cases(CPU if device == "cpu" else GPU)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How large the work of a suite is."""

    array_bytes: int
    working_sets: tuple[int, ...]
    read_bytes: int
    square: int
    ladder: int
    layers: tuple[tuple[int, int], ...]  # n and k of products in a model's layers
    rows: tuple[int, ...]  # their m
    waves: tuple[int, ...]  # m of the product whose blocks fill the card in waves
    short: tuple[int, ...]  # squares of products that take microseconds
    long_s: int
    vectors: int  # rows of norms and softmax
    tokens: int
    lengths: tuple[int, ...]  # of causal attention, `packed` tokens in all
    packed: int
    train: tuple[int, ...]
    decode: tuple[int, ...]
    models: tuple[tuple[int, ...], ...]  # layers of whole models, to be decoded at every batch of
    batches: tuple[int, ...]
    elements: int
    chased: tuple[int, ...]  # bytes to walk in
    loads: int  # of one such walk
    inflight_bytes: int
    warps: tuple[int, ...]  # on an SM
    reads: int  # strided ones
    strides: tuple[int, ...]
    requests: int  # to shared memory, of an SM
    steps: int  # of each way that a warp goes
    carried: tuple[int, ...]  # bytes between host and GPU
    int4_rows: tuple[int, ...]
    int8_rows: tuple[int, ...]
    experts: tuple[tuple[int, ...], ...]  # experts, top_k, hidden, intermediate
    routed: tuple[int, ...]  # tokens that go to experts
    sampled: tuple[int, ...]  # rows of logits
    vocabulary: int
    prompts: tuple[int, ...]
    users: tuple[int, ...]
    turns: int  # requests of each user


QUICK = Sizes(
    array_bytes=16 * MiB,
    working_sets=(MiB,),
    read_bytes=4 * MiB,
    square=512,
    ladder=128,
    layers=((512, 256),),
    rows=(1, 32),
    waves=(128,),
    short=(64,),
    long_s=1,
    vectors=256,
    tokens=256,
    lengths=(128,),
    packed=256,
    train=(2, 64, 2, 256, 32, 2),
    decode=(2, 256, 4, 2, 64, 704, 1, 256),
    models=(),
    batches=(),
    elements=2**19,
    chased=(16 * KiB,),
    loads=100,
    inflight_bytes=2**19,
    warps=(1,),
    reads=2**12,
    strides=(1, 8),
    requests=2**7,
    steps=64,
    carried=(KiB,),
    int4_rows=(2,),
    int8_rows=(32,),
    experts=((4, 2, 64, 32),),
    routed=(16,),
    sampled=(2,),
    vocabulary=500,
    prompts=(32,),
    users=(2,),
    turns=2,
)
CPU = replace(
    QUICK,  # and for what needs a GPU, which is skipped, its sizes
    array_bytes=256 * MiB,
    working_sets=(MiB,),
    read_bytes=64 * MiB,
    square=2048,
    ladder=512,
    layers=((2816, 1024),),
    rows=(1, 4, 16, 64, 256, 1024),
    waves=(128,),
    short=(128,),
    long_s=2,
    vectors=8192,
    tokens=1024,
    lengths=(256, 1024),
    packed=1024,
    train=(4, 256, 4, 2000, 128, 4),
    decode=(4, 1024, 8, 2, 128, 2816, 1, 1024),
    models=((4, 512, 8, 2, 64, 1408),),
    batches=(1, 4),
    elements=2**26,
    experts=((16, 2, 512, 512),),
    routed=(1, 64, 1024),
    sampled=(1, 64),
    vocabulary=128_256,
    prompts=(128, 512),
)
GPU = Sizes(
    array_bytes=2 * GiB,
    # from one SM's share to many times any L2, closer together where an L2 ends
    working_sets=(
        *(size * KiB for size in (64, 256)),
        *(size * MiB for size in (1, 4, 8, 16, 20, 24, 28, 32, 40, 48, 64, 96, 128, 256)),
        *(size * GiB for size in (1, 4)),
    ),
    read_bytes=16 * GiB,
    square=8192,
    ladder=4096,
    layers=((28_672, 4096), (4096, 14_336)),  # both products of Llama 3.1 8B's MLP, gate and up in one
    rows=tuple(2**power for power in range(15)),
    waves=tuple(range(128, 4097, 128)),
    short=(128, 256, 512, 1024, 2048),
    long_s=6,
    vectors=32_768,
    tokens=4096,
    lengths=tuple(2**power for power in range(9, 15)),
    packed=16_384,
    train=(24, 1024, 16, 50_304, 1024, 8),  # GPT-2 medium
    decode=(8, 4096, 32, 8, 128, 14_336, 1, 4096),
    models=((16, 2048, 32, 8, 64, 8192), (32, 4096, 32, 8, 128, 14_336)),  # Llama 3.2 1B and 3.1 8B, without head
    batches=(1, 4, 16, 64),
    elements=2**28,
    # an L1, an L2, memory, and pages too many to know by heart
    chased=(
        *(size * KiB for size in (16, 64, 128, 512)),
        *(size * MiB for size in (1, 4, 8, 16, 32, 64, 128, 512)),
        *(size * GiB for size in (2, 8)),
    ),
    loads=10_000,
    inflight_bytes=GiB,
    warps=(1, 2, 4, 8, 16, 32, 64),
    reads=2**26,
    strides=(1, 2, 4, 8, 16, 32),
    requests=2**18,
    steps=2**14,
    carried=(4 * KiB, 64 * KiB, MiB, 16 * MiB, 256 * MiB),
    int4_rows=tuple(2**power for power in range(0, 13, 2)),
    int8_rows=(32, 128, 512, 2048, 8192),
    experts=((128, 8, 2048, 768), (8, 2, 4096, 14_336)),  # Qwen3-30B-A3B and Mixtral 8x7B
    routed=(1, 4, 16, 64, 256, 1024, 4096, 16_384),
    sampled=(1, 64, 256),
    vocabulary=128_256,
    prompts=(128, 512, 2048, 8192),
    users=(1, 4, 16, 64),
    turns=3,
)
SHORT_CALLS, CONTEXT = 50, 1024
COPIES = 1000  # of a working set, in one graph at most


def _cases(size: Sizes) -> tuple[Case, ...]:
    """In order of value: a recording that was stopped holds the first of them."""
    square, half, wide = size.square, size.square // 2, 2 * size.square
    shapes = ((square,) * 3, (half,) * 3, (1, wide, wide), (16, wide, wide), (half, half, 8 * square))
    heads, head_dim = 16, 128
    cases = (
        _case("launch", "fp32", 1000),
        _case("launch_graph", "fp32", 1000),
        _case("copy", "fp32", size.array_bytes),
        _case("copy", "fp32", size.array_bytes // 4),
        _case("triad", "fp32", size.array_bytes),
        *(_case("reread", "fp32", bytes_, size.read_bytes) for bytes_ in size.working_sets),
        *(_case("recopy", "fp32", bytes_, min(size.read_bytes, COPIES * bytes_)) for bytes_ in size.working_sets),
        *(_case("gemm", dtype, *shape) for dtype in ("fp32", "bf16") for shape in shapes),
        *(_case("gemm", dtype, *(square,) * 3) for dtype in ("fp16", "tf32", "fp8")),
        *(
            _case("gemm", dtype, m, n, k)
            for dtype in ("bf16", "fp8", "tf32")
            for n, k in size.layers[: 1 if dtype == "tf32" else None]
            for m in size.rows
        ),
        *(_case("gemm_graph", "bf16", *(edge,) * 3, SHORT_CALLS) for edge in size.short),
        *(_case("ladder_" + rung, "fp32", *(size.ladder,) * 3) for rung in ("naive", "tiled", "registers")),
        *(_case("tiled_gemm", "fp16", half, half, half, tile) for tile in (16, 32, 64, 128)),
        *(_case("gemm", "bf16", m, half, half) for m in size.waves),
        *(
            _case(f"attention_{kind}", dtype, 1, 8, 64, size.tokens)
            for dtype in ("fp32", "bf16")
            for kind in ("unfused", "fused")
        ),
        *(
            _case(f"attention_{kind}", "bf16", size.packed // tokens, heads, head_dim, tokens)
            for kind in ("causal", "cudnn", "causal_backward", "cudnn_backward")
            for tokens in size.lengths
        ),
        *(_case(f"layernorm_{way}", "fp32", size.vectors, 4096) for way in ("fused", "steps", "compiled")),
        _case("softmax", "fp32", size.vectors, 4096),
        _case("rmsnorm", "fp32", size.vectors, 4096),
        *(_case("saxpy", "fp32", size.elements, bits) for bits in (32, 128)),
        *(_case(f"train_{way}", "bf16", *size.train) for way in ("eager", "peak", "compiled")),
        *(_case(f"decode_{kind}", "bf16", *size.decode) for kind in ("eager", "compiled", "graph")),
        *(
            _case(f"decode_{way}", "bf16", *model, batch, CONTEXT)
            for model in size.models
            for batch in size.batches
            for way in ("eager", "graph")
        ),
        _case("gemm_long", "bf16", *(square,) * 3, size.long_s),
        *_threads(size),
        *_models(size),
        _case("gemm_zeros", "bf16", *(square,) * 3),
        _case("gemm_long", "fp8", *(square,) * 3, size.long_s),
    )
    return tuple({case.name: case for case in cases}.values())


def _threads(size: Sizes) -> tuple[Case, ...]:
    """What threads, warps and copies cost, apart from any product."""
    ways = (1, 2, 4, 8, 16, 32)
    return (
        *(_case("chase", "fp32", bytes_, size.loads) for bytes_ in size.chased),
        *(_case("inflight", "fp32", size.inflight_bytes, warps, loads) for loads in (1, 4) for warps in size.warps),
        *(_case("strided", "fp32", size.reads, stride) for stride in size.strides),
        *(_case("banks", "fp32", size.requests, stride) for stride in (*ways, 33)),
        *(_case("paths", "fp32", size.steps, paths) for paths in ways),
        *(
            _case(f"copy_{way}{memory}", "fp32", bytes_)
            for memory in ("", "_pageable")
            for way in ("to_gpu", "from_gpu")
            for bytes_ in size.carried
        ),
    )


def _models(size: Sizes) -> tuple[Case, ...]:
    """What models ask for beside their dense products."""
    square, (n, k) = size.square, size.layers[0]
    models, half = size.models[-1:] or (size.decode[:6],), (CONTEXT if size.models else size.tokens) // 2
    return (
        _case("gemm", "int8", *(square,) * 3),
        *(_case("gemm", "int8", m, n, k) for m in size.int8_rows),
        *(_case("gemm_int4", "bf16", m, n, k) for m in size.int4_rows),
        *(
            _case(f"experts_{way}", "bf16", tokens, *layer)
            for layer in size.experts
            for way in ("grouped", "loop")
            for tokens in size.routed
        ),
        *(
            _case(f"sample_{way}", "fp32", rows, size.vocabulary)
            for way in ("greedy", "top_p")
            for rows in size.sampled
        ),
        *(_case("prefill_eager", "bf16", *model, 1, tokens) for model in models for tokens in size.prompts),
        *(
            # a prompt and its longest answer are as long as the cache of a decode step
            _case(f"loop_{what}", "bf16", *model, size.vocabulary, users, half, half, max(6, size.turns * users))
            for model in models
            for users in size.users
            for what in ("first", "gap")
        ),
    )
