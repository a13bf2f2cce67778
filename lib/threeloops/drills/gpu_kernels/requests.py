"""Drills on the requests of a warp: sectors of global memory, turns at shared memory.

Strides and row lengths are no powers of two, so that each mistake leads to a number of its own.
"""

import math

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.inner_loop import coalescing

TAUGHT = Taught("inner", "The programming model")

SOURCE_GUIDE = "NVIDIA, CUDA C++ Best Practices Guide 12.9, 2025"
SOURCE_COALESCING = f"{SOURCE_GUIDE}, 10.2.1 (coalesced access, transactions of 32 bytes)"
SOURCE_BANKS = f"{SOURCE_GUIDE}, 10.2.3.1 (shared memory and its banks)"
FLOAT_BYTES = 4

# --- a strided read ------------------------------------------------------------------------------


def _gather_bytes(p: Draw, read_sectors: int, write_sectors: int) -> float:
    return float(p.warps * (read_sectors + write_sectors) * coalescing.SECTOR_BYTES)


def _read_sectors(p: Draw) -> int:
    return coalescing.sectors_per_request(stride_elements=p.stride, bytes_per_element=FLOAT_BYTES)


def _count_gather(p: Draw) -> float:
    import numpy as np

    from threeloops.simulate.inner_loop import simt, toy_kernels  # numpy, which a reader's own drills do not need

    threads = 32 * p.warps
    x, y = np.ones(p.stride * threads, dtype=np.float32), np.zeros(threads, dtype=np.float32)
    run = simt.launch(toy_kernels.gather, threads, p.stride, 0, x, y, grid=(p.warps,), block=(32,))
    return float(run.moved_bytes)


GATHER = Drill(
    key="gpu-strided-read",
    taught=TAUGHT,
    title="Every few numbers",
    unit="B",
    target_s=120,
    draw=lambda rng: drawn(stride=rng.choice((3, 5, 6, 7)), warps=rng.randrange(24_000, 78_000, 4_000)),
    small=lambda rng: drawn(stride=rng.choice((3, 5, 6, 7)), warps=rng.choice((2, 3, 5))),
    prompt=lambda p: (
        f"A kernel runs y[i] = x[{p.stride} * i] with one thread per i, in {p.warps:,} full warps. Both arrays hold"
        " 32-bit floats and begin on a 256-byte boundary. No cache keeps anything. How many bytes do its requests move"
        " to and from global memory?"
    ),
    derive=lambda p: Derivation(
        value=_gather_bytes(p, _read_sectors(p), 4),
        formula="warps × (sectors that the 31 strides span + 4 sectors written) × 32 bytes",
        substitution=f"{p.warps} × (floor((31 × {p.stride} × 4 + 3) / 32) + 1 + 4) × 32",
        source=SOURCE_COALESCING,
    ),
    count=_count_gather,
    slips=(
        Slip("no-write", lambda p: _gather_bytes(p, _read_sectors(p), 0))
        | "You counted what is read. The kernel also writes.",
        Slip("asked-for", lambda p: _gather_bytes(p, 4, 4))
        | "You counted the bytes that threads ask for. Memory does not come in numbers.",
        Slip("sector-each", lambda p: _gather_bytes(p, 32, 4))
        | "You gave every lane a sector of its own. At this stride some neighbours still share one.",
        Slip("strided-write", lambda p: _gather_bytes(p, _read_sectors(p), _read_sectors(p)))
        | "You spread the writes like the reads. Where do neighbouring threads write?",
        Slip("line-each", lambda p: _gather_bytes(p, 128, 4))
        | "You moved a whole line of 128 bytes per lane. Lines are fetched by sectors, and lanes share them.",
    ),
    function=AsFunction(
        takes=("stride", "warps"),
        limit={"stride": 11},
        limit_case="a stride so long that every lane has a sector of its own",
    ),
)

# --- a column of a padded tile -------------------------------------------------------------------


def _count_banks(p: Draw) -> float:
    import numpy as np

    from threeloops.simulate.inner_loop import simt, toy_kernels  # numpy, which a reader's own drills do not need

    x, y = np.ones((32, 32 * p.tiles), dtype=np.float32), np.zeros((32 * p.tiles, 32), dtype=np.float32)
    run = simt.launch(
        toy_kernels.transpose_through_shared, 32, 32 * p.tiles, p.pitch, x, y, grid=(p.tiles, 1), block=(32, 8)
    )
    return float(run.shared_passes - run.shared_requests // 2)  # the other half are rows going in, one turn each


BANKS = Drill(
    key="gpu-bank-turns",
    taught=TAUGHT,
    title="Columns on the desk",
    unit="",
    whole="exact",
    target_s=90,
    draw=lambda rng: drawn(pitch=rng.choice((44, 52, 56, 60, 76, 88)), tiles=rng.randrange(250, 950, 10)),
    small=lambda rng: drawn(pitch=rng.choice((44, 52, 56, 60, 76, 88)), tiles=rng.choice((2, 3))),
    prompt=lambda p: (
        f"A kernel keeps tiles of 32 by 32 floats in shared memory, with rows {p.pitch} words apart. A warp reads one"
        f" column with one request, and each of {p.tiles} tiles is read by all of its columns once. How many turns does"
        " shared memory need for these reads?"
    ),
    derive=lambda p: Derivation(
        value=float(p.tiles * 32 * coalescing.passes_per_request(stride_words=p.pitch)),
        formula="tiles × 32 columns × gcd(words per row, 32 banks)",
        substitution=f"{p.tiles} × 32 × {math.gcd(p.pitch, 32)}",
        source=SOURCE_BANKS,
    ),
    count=_count_banks,
    slips=(
        Slip("no-conflict", lambda p: p.tiles * 32.0)
        | "You took one turn per request. This row length is not free of conflicts.",
        Slip("all-in-one", lambda p: p.tiles * 32.0 * 32)
        | "You put a whole column into one bank. That happens only if rows are a multiple of 32 words.",
        Slip("remainder", lambda p: p.tiles * 32.0 * (p.pitch % 32))
        | "You took the remainder by 32. How many lanes come back to the same bank?",
        Slip("banks-hit", lambda p: p.tiles * 32.0 * (32 // math.gcd(p.pitch, 32)))
        | "You counted the banks that are used. The turns are the lanes per bank.",
        Slip("extra-turns", lambda p: p.tiles * 32.0 * (math.gcd(p.pitch, 32) - 1))
        | "You counted the turns beyond the first of each request. All were asked for.",
    ),
)

DRILLS = (GATHER, BANKS)
