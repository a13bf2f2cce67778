"""Triton kernels that are recorded: a working set read round and round, SAXPY with narrow and wide loads, and a plain
tile product. Only where Triton is
installed; the recorder asks first.

How wide a load is, Triton decides from how many neighbouring elements fall to one thread: as many elements as threads
give each thread one (32 bits in fp32), four times as many give it four in a row (128 bits, one instruction).
"""

import torch
from torch import Tensor

from threeloops import checks

try:
    import triton
    import triton.language as tl
except ModuleNotFoundError:
    triton = None

WARPS, LANES = 4, 32
ELEMENT_BITS = 32
PIECE, PROGRAMS_PER_SM = 4096, 8  # elements of a piece; enough loads under way to hide the memory's latency


if triton is not None:

    @triton.jit
    def _saxpy(x, y, scalar, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = place < n
        tl.store(y + place, scalar * tl.load(x + place, mask=inside) + tl.load(y + place, mask=inside), mask=inside)

    @triton.jit
    def _reread(x, out, pieces, turns, PIECE: tl.constexpr):  # type: ignore[no-untyped-def]
        me, inside = tl.program_id(0), tl.arange(0, PIECE)
        total = tl.zeros((PIECE,), dtype=tl.float32)
        for turn in range(turns):
            piece = (me + turn * tl.num_programs(0)) % pieces
            total += tl.load(x + piece.to(tl.int64) * PIECE + inside, cache_modifier=".cg")  # from L2, past the L1
        tl.store(out + me * PIECE + inside, total)

    @triton.jit
    def _tiled_gemm(a, b, c, m, n, k, TILE: tl.constexpr, DEPTH: tl.constexpr):  # type: ignore[no-untyped-def]
        rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
        columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
        total = tl.zeros((TILE, TILE), dtype=tl.float32)
        for start in range(0, k, DEPTH):
            inner = start + tl.arange(0, DEPTH)
            left = tl.load(
                a + rows[:, None] * k + inner[None, :], mask=(rows[:, None] < m) & (inner[None, :] < k), other=0.0
            )
            right = tl.load(
                b + inner[:, None] * n + columns[None, :], mask=(inner[:, None] < k) & (columns[None, :] < n), other=0.0
            )
            total += tl.dot(left, right)
        tl.store(
            c + rows[:, None] * n + columns[None, :],
            total.to(c.dtype.element_ty),
            mask=(rows[:, None] < m) & (columns[None, :] < n),
        )


def reread(x: Tensor, *, read_bytes: int) -> Tensor:
    """Read an array round and round, a piece of 16 KiB after the other, so many bytes in all: what the L2 holds of it
    comes from there. Every program writes one piece of sums, so that nothing is left out; that is not counted.
    """
    programs = PROGRAMS_PER_SM * torch.cuda.get_device_properties(x.device).multi_processor_count
    out = torch.empty(programs * PIECE, device=x.device)
    turns = max(1, read_bytes // (programs * PIECE * x.itemsize))
    _reread[(programs,)](x, out, x.numel() // PIECE, turns, PIECE=PIECE, num_warps=WARPS)
    return out


def saxpy(x: Tensor, y: Tensor, scalar: float, *, load_bits: int) -> None:
    """y = scalar * x + y in place, fp32, with loads of 32 or 128 bits."""
    checks.one_of(("32", "128"), load_bits=str(load_bits))
    block = WARPS * LANES * load_bits // ELEMENT_BITS
    _saxpy[(triton.cdiv(x.numel(), block),)](x, y, scalar, x.numel(), BLOCK=block, num_warps=WARPS)


def tiled_gemm(a: Tensor, b: Tensor, *, tile: int) -> Tensor:
    """[m, k] x [k, n] with one program per tile x tile of the output; rows and columns are contiguous."""
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)
    _tiled_gemm[(triton.cdiv(m, tile), triton.cdiv(n, tile))](
        a, b, c, m, n, k, TILE=tile, DEPTH=min(tile, 32), num_warps=WARPS
    )
    return c
