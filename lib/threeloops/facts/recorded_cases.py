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
from threeloops.units import MiB, fmt_bytes

ATTENTION = ("batch", "heads", "head_dim", "tokens")
DECODE = ("layers", "hidden", "heads", "kv_heads", "head_dim", "intermediate", "batch", "context")
TILED = ("m", "n", "k", "tile")

# What can be recorded, and the sizes that say how much of it. One sample is one call.
KINDS: dict[str, tuple[str, ...]] = {
    "copy": ("bytes",),  # read an array of so many bytes and write it elsewhere
    "triad": ("bytes",),  # a = b + scalar * c, arrays of so many bytes each
    "saxpy": ("elements", "load_bits"),  # y = a * x + y in Triton, so many bits per load
    "softmax": ("rows", "width"),
    "rmsnorm": ("rows", "width"),
    "gemm": ("m", "n", "k"),
    "tiled_gemm": TILED,  # a plain tile kernel in Triton, square tiles
    "attention_unfused": ATTENTION,  # scores written out
    "attention_fused": ATTENTION,  # one kernel
    "launch": ("operations",),  # so many operations on a single number
    "decode_eager": DECODE,  # the layers of one decode step
    "decode_compiled": DECODE,
    "decode_graph": DECODE,
}
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
        shape = f"{sizes[0]} layers of {sizes[1]}" if kind == "decode" else "×".join(map(str, sizes))
        shape = fmt_bytes(sizes[0], base=2) if KINDS[self.kind] == ("bytes",) else shape
        return ", ".join(filter(None, (kind, way, self.dtype, shape)))


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
        return _cases(
            mebibytes=16, square=512, rows=256, tokens=256, decode=(2, 256, 4, 2, 64, 704, 1, 256), elements=1_048_576
        )
    if device == "cpu":
        return _cases(
            mebibytes=256,
            square=2048,
            rows=8192,
            tokens=1024,
            decode=(4, 1024, 8, 2, 128, 2816, 1, 1024),
            elements=2**26,
        )
    return _cases(
        mebibytes=2048,
        square=8192,
        rows=32_768,
        tokens=4096,
        decode=(8, 4096, 32, 8, 128, 14_336, 1, 4096),
        elements=2**28,
    )


def _cases(
    *, mebibytes: int, square: int, rows: int, tokens: int, decode: tuple[int, ...], elements: int
) -> tuple[Case, ...]:
    array = mebibytes * MiB
    half, wide = square // 2, 2 * square
    shapes = ((square, square, square), (half, half, half), (1, wide, wide), (16, wide, wide), (half, half, 8 * square))
    return (
        _case("copy", "fp32", array),
        _case("copy", "fp32", array // 4),
        _case("triad", "fp32", array),
        _case("softmax", "fp32", rows, 4096),
        _case("rmsnorm", "fp32", rows, 4096),
        _case("saxpy", "fp32", elements, 32),
        _case("saxpy", "fp32", elements, 128),
        *(_case("gemm", dtype, *shape) for dtype in ("fp32", "bf16") for shape in shapes),
        _case("gemm", "fp16", square, square, square),
        _case("gemm", "fp8", square, square, square),
        *(_case("tiled_gemm", "fp16", half, half, half, tile) for tile in (16, 32, 64, 128)),
        *(
            _case(f"attention_{kind}", dtype, 1, 8, 64, tokens)
            for dtype in ("fp32", "bf16")
            for kind in ("unfused", "fused")
        ),
        _case("launch", "fp32", 1000),
        *(_case(f"decode_{kind}", "bf16", *decode) for kind in ("eager", "compiled", "graph")),
    )
