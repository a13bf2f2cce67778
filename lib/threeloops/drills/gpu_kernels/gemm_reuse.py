"""Drills on what feeds a matrix product: the room for its tiles, the reuse in registers, and pruned weights."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.gpu_kernels.gemm_shapes import SOURCE_GUIDE
from threeloops.inner_loop import gemm_tiles, sparsity

TAUGHT = Taught("inner", "GEMM and tensor cores")

SOURCE_TILES = "Hong and Kung, STOC 1981, doi:10.1145/800076.802486"
SOURCE_SPARSE = "Mishra et al., 2021, arXiv:2104.08378, section 3"

# --- room for the tiles of a pipeline ------------------------------------------------------------


def _derive_pipeline(p: Draw) -> Derivation:
    return Derivation(
        value=gemm_tiles.pipeline_bytes(
            tile_m=p.tile_m, tile_n=p.tile_n, tile_k=p.tile_k, stages=p.stages, bytes_per_element=2
        ),
        formula="stages × (rows of the tile + columns of the tile) × depth × 2 bytes",
        substitution=f"{p.stages} × ({p.tile_m} + {p.tile_n}) × {p.tile_k} × 2",
        source=SOURCE_GUIDE,
    )


def _count_pipeline(p: Draw) -> float:
    """Lay out every number of every stage."""
    held = {(stage, "a", row, step) for stage in range(p.stages) for row in range(p.tile_m) for step in range(p.tile_k)}
    held |= {
        (stage, "b", step, column)
        for stage in range(p.stages)
        for step in range(p.tile_k)
        for column in range(p.tile_n)
    }
    return 2.0 * len(held)


PIPELINE = Drill(
    key="gemm-pipeline-bytes",
    taught=TAUGHT,
    title="Room for a pipeline",
    unit="B",
    capacity=True,
    target_s=100,
    draw=lambda rng: drawn(
        tile_m=rng.choice((96, 128)),
        tile_n=rng.choice((160, 192, 256, 320)),
        tile_k=rng.choice((24, 32, 48, 80)),
        stages=rng.choice((4, 5, 6)),
    ),
    small=lambda rng: drawn(
        tile_m=rng.choice((5, 6)), tile_n=rng.choice((8, 9)), tile_k=rng.choice((2, 3)), stages=rng.choice((4, 5))
    ),
    prompt=lambda p: (
        f"Each block of a bf16 matmul keeps a tile of {p.tile_m} by {p.tile_n} sums in registers and advances along"
        f" the inner dimension in steps of {p.tile_k}. So that loads run ahead of the arithmetic, the operands of"
        f" {p.stages} steps lie in shared memory at once. How much shared memory does a block take?"
    ),
    derive=_derive_pipeline,
    count=_count_pipeline,
    slips=(
        Slip("one-stage", lambda p: _derive_pipeline(p).value / p.stages)
        | "You made room for one step. Several are there at once.",
        Slip("one-operand", lambda p: 2.0 * p.stages * p.tile_m * p.tile_k)
        | "You laid out one operand. Which tile does it meet?",
        Slip("elements", lambda p: _derive_pipeline(p).value / 2)
        | "You counted numbers. In bf16 each takes more than a byte.",
        Slip("result-too", lambda p: _derive_pipeline(p).value + 4.0 * p.tile_m * p.tile_n)
        | "You made room for the sums. Where do they wait?",
    ),
)

# --- reuse in registers --------------------------------------------------------------------------


# Patches of which no wrong reading comes near another.
PATCHES = [
    (rows, columns)
    for rows in range(4, 13)
    for columns in range(3, 17)
    if rows != columns and abs(rows - 3 * columns) > 1
]


def _draw_registers(rng: random.Random) -> Draw:
    rows, columns = rng.choice(PATCHES)
    return drawn(rows=rows, columns=columns, threads_m=rng.choice((12, 20)), threads_n=rng.choice((16, 24)))


def _registers(p: Draw) -> float:
    return gemm_tiles.tile_intensity(rows=p.rows, columns=p.columns, bytes_per_element=4)


def _count_registers(p: Draw) -> float:
    """Let every thread take one step along the inner dimension, and note what it reads and what it multiplies."""
    read, multiplied = 0, 0
    for _ in range(p.threads_m * p.threads_n):
        column, row = [1.0] * p.rows, [1.0] * p.columns
        read += len(column) + len(row)
        multiplied += len([left * right for left in column for right in row])
    return 2 * multiplied / (4 * read)


REGISTERS = Drill(
    key="gemm-register-reuse",
    taught=TAUGHT,
    title="What a larger thread buys",
    unit="FLOP/B",
    target_s=100,
    draw=_draw_registers,
    small=lambda rng: drawn(
        rows=rng.choice((2, 4)), columns=rng.choice((3, 5)), threads_m=rng.choice((2, 3)), threads_n=rng.choice((4, 5))
    ),
    prompt=lambda p: (
        f"An fp32 matmul runs in blocks of {p.threads_m} by {p.threads_n} threads. Each thread keeps a patch of"
        f" {p.rows} by {p.columns} sums in registers; per step of the inner dimension it reads one number per row and"
        " one per column of its patch from shared memory, and multiplies each with each. How many operations does a"
        " thread do per byte that it reads from shared memory?"
    ),
    derive=lambda p: Derivation(
        value=_registers(p),
        formula="2 × rows × columns / ((rows + columns) × 4 bytes), of one thread",
        substitution=f"2 × {p.rows} × {p.columns} / (({p.rows} + {p.columns}) × 4)",
        source=SOURCE_TILES,
    ),
    count=_count_registers,
    slips=(
        Slip("multiply-adds", lambda p: _registers(p) / 2) | "You counted multiply-adds. Each is two operations.",
        Slip("elements", lambda p: 4 * _registers(p)) | "That is per number read. How many bytes is a number?",
        Slip(
            "block",
            lambda p: gemm_tiles.tile_intensity(
                rows=p.rows * p.threads_m, columns=p.columns * p.threads_n, bytes_per_element=4
            ),
        )
        | "That is what the block asks of device memory. The question is one level further in.",
        Slip("one-sum", lambda p: 0.25) | "You read two numbers for every multiply-add. What are the registers for?",
        Slip("one-operand", lambda p: 2 * p.rows / 4)
        | "You read the numbers of the columns only. Both operands come from shared memory.",
    ),
)

# --- weights, two of four ------------------------------------------------------------------------


def _full(p: Draw) -> float:
    return float(p.rows * p.columns * p.bytes_per_element)


def _count_sparse(p: Draw) -> float:
    import numpy as np  # numpy, which a reader's own drills do not need

    from threeloops.simulate.inner_loop import two_of_four

    return float(
        two_of_four.pack(
            np.arange(p.rows * p.columns).reshape(p.rows, -1).astype(f"i{p.bytes_per_element}")
        ).stored_bytes
    )


SPARSE = Drill(
    key="gemm-sparse-bytes",
    taught=TAUGHT,
    title="Half the weights, and their places",
    unit="B",
    target_s=90,
    draw=lambda rng: drawn(
        rows=rng.randrange(2000, 9000, 500),
        columns=rng.randrange(3000, 14_000, 1000),
        bytes_per_element=rng.choice((1, 2)),
    ),
    small=lambda rng: drawn(
        rows=rng.choice((3, 5, 6)), columns=8 * rng.choice((2, 3, 5)), bytes_per_element=rng.choice((1, 2))
    ),
    prompt=lambda p: (
        f"A matrix of {p.rows:,} by {p.columns:,} weights in {8 * p.bytes_per_element} bits is pruned to 2:4 sparsity"
        " and stored for the tensor cores: the weights that were kept, and for each of them where among its four"
        " neighbours it stood. How many bytes is that?"
    ),
    derive=lambda p: Derivation(
        value=sparsity.sparse_bytes(rows=p.rows, columns=p.columns, bytes_per_element=p.bytes_per_element),
        formula="rows × columns / 2 × (bytes per weight + 2 bits / 8)",
        substitution=f"{p.rows} × {p.columns} / 2 × ({p.bytes_per_element} + 2 / 8)",
        source=SOURCE_SPARSE,
    ),
    count=_count_sparse,
    slips=(
        Slip("no-places", lambda p: _full(p) / 2)
        | "You stored the weights alone. A kernel could not tell where they belong.",
        Slip("place-of-every-weight", lambda p: _full(p) / 2 + p.rows * p.columns / 4)
        | "You noted a place for every weight. Only the kept ones have one.",
        Slip("nothing-saved", _full) | "That is the matrix before pruning.",
        Slip("places-only", lambda p: p.rows * p.columns / 8)
        | "Those are the places. The weights are stored beside them.",
    ),
)

DRILLS = (PIPELINE, REGISTERS, SPARSE)
