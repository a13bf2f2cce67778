"""Recorded cases: what `threeloops record` measures, case by case, each under a name that holds its sizes, so that
the same name is always the same work.

>>> Case(kind="gemm", dtype="bf16", sizes={"m": 1, "n": 4096, "k": 4096}).name
'gemm-bf16-m1-n4096-k4096'
>>> [case.name for case in suite(device="cpu", quick=True) if case.kind == "launch"]
['launch-fp32-operations1000']
"""

from collections.abc import Mapping
from dataclasses import dataclass

from threeloops import checks, dtypes
from threeloops.units import GiB, KiB, MiB, fmt_bytes

ATTENTION = ("batch", "heads", "head_dim", "tokens")
DECODE = ("layers", "hidden", "heads", "kv_heads", "head_dim", "intermediate", "batch", "context")
PRODUCT = ("m", "n", "k")
ROWS = ("rows", "width")
TRAIN = ("layers", "hidden", "heads", "vocabulary", "tokens", "batch")

# What can be recorded, and the sizes that say how much of it. One sample is one call.
KINDS: dict[str, tuple[str, ...]] = {
    "copy": ("bytes",),  # read an array of so many bytes and write it elsewhere
    "triad": ("bytes",),  # a = b + scalar * c, arrays of so many bytes each
    "reread": ("bytes", "read_bytes"),  # read a working set of so many bytes round and round, so many bytes in all
    "saxpy": ("elements", "load_bits"),  # y = a * x + y in Triton, so many bits per load
    "softmax": ROWS,
    "rmsnorm": ROWS,
    "layernorm_fused": ROWS,  # torch's one kernel
    "layernorm_steps": ROWS,  # written out: nine kernels
    "layernorm_compiled": ROWS,  # the nine, compiled
    "gemm": PRODUCT,
    "gemm_graph": (*PRODUCT, "calls"),  # the same product so many times, issued by one CUDA graph
    "gemm_long": (*PRODUCT, "seconds"),  # after so many seconds of the same product without a pause
    "tiled_gemm": (*PRODUCT, "tile"),  # a plain tile kernel in Triton, square tiles
    "ladder_naive": PRODUCT,  # CUDA C++: a thread for each number of the result
    "ladder_tiled": PRODUCT,  # tiles of both operands in shared memory
    "ladder_registers": PRODUCT,  # and 8 x 8 sums in the registers of each thread
    "attention_unfused": ATTENTION,  # scores written out
    "attention_fused": ATTENTION,  # one kernel
    "attention_causal": ATTENTION,  # the same behind a causal mask
    "attention_cudnn": ATTENTION,  # cuDNN's kernel, causal
    "attention_causal_backward": ATTENTION,  # the backward pass alone
    "attention_cudnn_backward": ATTENTION,
    "launch": ("operations",),  # so many operations on a single number
    "launch_graph": ("operations",),  # issued by one CUDA graph
    "train_eager": TRAIN,  # forward, backward and AdamW, in fp32 with autocast
    "train_compiled": TRAIN,
    "train_peak": TRAIN,  # bytes that such a step allocates at its highest, weights and states included
    "decode_eager": DECODE,  # the layers of one decode step
    "decode_compiled": DECODE,
    "decode_graph": DECODE,
}
BYTES = ("train_peak",)  # measured in bytes; all others in seconds
DEVICES = ("cpu", "cuda")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One piece of work that a machine can be timed at."""

    kind: str
    dtype: str
    sizes: Mapping[str, int]

    def __post_init__(self) -> None:
        checks.one_of(KINDS, kind=self.kind)
        checks.one_of(dtypes.BITS, dtype=self.dtype)
        checks.table(sizes=self.sizes)
        if set(self.sizes) != set(KINDS[self.kind]):
            raise ValueError(
                f"sizes of {self.kind} must be {', '.join(KINDS[self.kind])}, not"
                f" {', '.join(map(str, self.sizes)) or 'none'}"
            )
        checks.count(**self.sizes)

    @property
    def name(self) -> str:
        """Kind, number format and every size."""
        return "-".join([self.kind, self.dtype, *(f"{size}{self.sizes[size]}" for size in KINDS[self.kind])])

    @property
    def label(self) -> str:
        """The same for a row of a table: of a decode step, how many layers of which width.

        >>> Case(
        ...     kind="attention_fused", dtype="bf16", sizes={"batch": 1, "heads": 8, "head_dim": 64, "tokens": 4096}
        ... ).label
        'attention, fused, bf16, 1×8×64×4096'
        """
        kind, _, way = self.kind.partition("_") if self.kind != "tiled_gemm" else ("tiled gemm", "", "")
        sizes = [self.sizes[size] for size in KINDS[self.kind]]
        shape = f"{sizes[0]} layers of {sizes[1]}" if kind in ("decode", "train") else "×".join(map(str, sizes))
        if kind == "decode":
            shape += f", batch {self.sizes['batch']}"
        if KINDS[self.kind][0] == "bytes":
            shape = fmt_bytes(sizes[0], base=2)
        return ", ".join(filter(None, (kind, way.replace("_", " "), self.dtype, shape)))

    @property
    def unit(self) -> str:
        """Of what is measured: s, or B.

        >>> Case(kind="launch", dtype="fp32", sizes={"operations": 10}).unit
        's'
        """
        return "B" if self.kind in BYTES else "s"


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
)
CPU = Sizes(
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
)
SHORT_CALLS, CONTEXT = 50, 1024


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
    )
    return tuple({case.name: case for case in cases}.values())
