"""Drills on kernels that copy ahead: stages, warp specialisation, and what an SM lets them have."""

import math
import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, changed, drawn
from threeloops.facts import compute_capability
from threeloops.inner_loop.kernels import register_shares, staged_copies
from threeloops.simulate.inner_loop import block_scheduler
from threeloops.units import KiB, ns

GEMM = Taught("inner", "GEMM and tensor cores")
MODEL = Taught("inner", "The programming model")

SOURCE_STAGES = "by definition, 2026: a tile waits for its copy, a copy for its stage"
SOURCE_SPECIALISED = (
    "NVIDIA, PTX ISA 9.0, setmaxnreg, 2025; Tilus, Script.setmaxnreg, 2026; CUTLASS,"
    " gemm/kernel/sm90_gemm_tma_warpspecialized_cooperative.hpp, 2025"
)
SOURCE_OCCUPANCY = "NVIDIA, CUDA C++ Best Practices Guide 12.9, 2025, 11.1.1 (occupancy and register allocation)"
SOURCE_SHARED = "NVIDIA, Ampere and Hopper Tuning Guides, 2025 (occupancy; unified shared memory: 1 KB for each block)"

# --- stages that hide a copy ---------------------------------------------------------------------


def _draw_stages(rng: random.Random) -> Draw:
    return drawn(
        latency_ns=rng.randrange(610, 1990, 7),
        compute_ns=rng.randrange(130, 460, 3),
        stage_kib=rng.choice((8, 12, 16, 20, 24, 32)),
    )


def _stages(p: Draw) -> int:
    return staged_copies.stages_to_hide(latency_s=p.latency_ns, compute_s=p.compute_ns)


def _play(tiles: int, stages: int, latency: float, compute: float) -> float:
    """When the last tile is multiplied: each copy begins when its stage is free, each tile when it is there."""
    ended: list[float] = []
    for tile in range(tiles):
        asked = ended[tile - stages] if tile >= stages else 0.0
        ended.append(max(asked + latency, ended[-1] if ended else 0.0) + compute)
    return ended[-1]


def _count_stages(p: Draw) -> float:
    """Stages are added until a long loop waits for its first copy alone."""
    stages = 1
    while _play(60, stages, p.latency_ns, p.compute_ns) > p.latency_ns + 60 * p.compute_ns + 1e-6:
        stages += 1
    return float(stages * p.stage_kib * KiB)


STAGES = Drill(
    key="gemm-stages-to-hide",
    taught=GEMM,
    title="How far ahead to copy",
    unit="B",
    capacity=True,
    target_s=90,
    draw=_draw_stages,
    small=_draw_stages,
    prompt=lambda p: (
        f"A block multiplies tiles that asynchronous copies bring into shared memory, a stage of {p.stage_kib} KiB for"
        f" each. A copy takes {p.latency_ns} ns until its tile is there, however many are on their way; a tile is"
        f" multiplied in {p.compute_ns} ns, and its stage is then filled again at once. How much shared memory do the"
        " fewest stages take with which only the first tile is waited for?"
    ),
    derive=lambda p: Derivation(
        value=float(_stages(p) * p.stage_kib * KiB),
        formula="(1 + ceil(latency of a copy / time to multiply a tile)) × bytes of a stage",
        substitution=f"(1 + ceil({p.latency_ns} / {p.compute_ns})) × {p.stage_kib} × 1024",
        source=SOURCE_STAGES,
    ),
    count=_count_stages,
    slips=(
        Slip("none-for-the-tile-at-work", lambda p: float(math.ceil(p.latency_ns / p.compute_ns) * p.stage_kib * KiB))
        | "You counted the stages that are on their way. The tile that is being multiplied has one, too.",
        Slip("two-buffers", lambda p: float(2 * p.stage_kib * KiB))
        | "You took two stages. Two are enough only where a copy is not longer than a tile's multiplying.",
        Slip("latency-only", lambda p: p.latency_ns / p.compute_ns * p.stage_kib * KiB)
        | "You did not round: a stage is there or it is not. And the tile at work needs one.",
        Slip("one-stage", lambda p: float(p.stage_kib * KiB))
        | "That is one stage. With one, every tile waits for its copy.",
    ),
)

# --- a loop with too few stages ------------------------------------------------------------------


def _draw_loop(rng: random.Random) -> Draw:
    return drawn(
        tiles=rng.randrange(33, 160),
        stages=rng.choice((2, 3)),
        latency_ns=rng.randrange(710, 1990, 7),
        compute_ns=rng.randrange(130, 260, 3),
    )


def _derive_loop(p: Draw) -> Derivation:
    rounds = f"floor(({p.tiles} − 1) / {p.stages})"
    return Derivation(
        value=staged_copies.staged_loop_s(
            tiles=p.tiles, stages=p.stages, latency_s=p.latency_ns * ns, compute_s=p.compute_ns * ns
        ),
        formula=(
            "rounds × (latency + multiply) + latency + (tiles − rounds × stages) × multiply, with rounds = (tiles −"
            " 1) / stages, rounded down"
        ),
        substitution=(
            f"({rounds} × ({p.latency_ns} + {p.compute_ns}) + {p.latency_ns} + ({p.tiles} − {rounds} × {p.stages}) ×"
            f" {p.compute_ns}) × 1e-9"
        ),
        source=SOURCE_STAGES,
    )


LOOP = Drill(
    key="gemm-too-few-stages",
    taught=GEMM,
    title="A copy that is longer than the loop is deep",
    unit="s",
    target_s=120,
    draw=_draw_loop,
    small=lambda rng: changed(_draw_loop(rng), tiles=rng.randrange(5, 30)),
    wanted=lambda p: p.latency_ns > p.stages * p.compute_ns,
    prompt=lambda p: (
        f"A block multiplies {p.tiles} tiles with {p.stages} stages of shared memory. A copy takes {p.latency_ns} ns,"
        f" however many are on their way; a tile is multiplied in {p.compute_ns} ns, and the copy into its stage is"
        " asked for as soon as it is done. All stages are asked for at the beginning. How long does the loop take?"
    ),
    derive=_derive_loop,
    count=lambda p: _play(p.tiles, p.stages, p.latency_ns, p.compute_ns) * ns,
    slips=(
        Slip("all-hidden", lambda p: (p.latency_ns + p.tiles * p.compute_ns) * ns)
        | "You hid every copy but the first. A stage is free too late for that: compare the times.",
        Slip("nothing-hidden", lambda p: p.tiles * (p.latency_ns + p.compute_ns) * ns)
        | "You copied and multiplied in turn, tile by tile. The stages' copies are on their way together.",
        Slip("latency-over-stages", lambda p: p.tiles * p.latency_ns / p.stages * ns)
        | "You divided the latency by the stages and left out the multiplying, which each stage waits for.",
        Slip("one-round", lambda p: (p.latency_ns + p.stages * p.compute_ns) * ns)
        | "That is the first round, a tile for each stage. How many rounds are there?",
    ),
)

# --- registers of those who multiply -------------------------------------------------------------


def _draw_consumers(rng: random.Random) -> Draw:
    return drawn(producers=rng.choice((1, 1, 2)), consumers=rng.choice((2, 3)), kept=rng.randrange(24, 121, 8))


def _consumers(p: Draw) -> int:
    return register_shares.consumer_registers(
        registers=65536, producers=p.producers, consumers=p.consumers, producer_registers=p.kept
    )


def _launched(p: Draw) -> int:
    return int(65536 // (128 * (p.producers + p.consumers)) // 8 * 8)


def _derive_consumers(p: Draw) -> Derivation:
    groups = f"({p.producers} + {p.consumers})"
    return Derivation(
        value=float(_consumers(p) * p.consumers * 128 * 4),
        formula=(
            "consumers × 128 threads × 4 bytes × ((groups × launched − producers × kept) / consumers, in whole eights),"
            " launched = 65,536 / (128 × groups), in whole eights"
        ),
        substitution=(
            f"{p.consumers} × 128 × 4 × min(256, floor(({groups} × floor(65536 / 128 / {groups} / 8) × 8 −"
            f" {p.producers} × {p.kept}) / {p.consumers} / 8) × 8)"
        ),
        source=SOURCE_SPECIALISED,
    )


def _count_consumers(p: Draw) -> float:
    """Eight at a time: to every thread at the launch, back from those that copy, then to those that multiply."""
    groups = [0] * (p.producers + p.consumers)
    unused = 65536
    while unused >= 128 * 8 * len(groups):
        groups = [held + 8 for held in groups]
        unused -= 128 * 8 * len(groups)
    pool = 0
    for copying in range(p.producers):
        while groups[copying] > p.kept:
            groups[copying] -= 8
            pool += 128 * 8
    while pool >= p.consumers * 128 * 8 and groups[-1] < 256:
        pool -= p.consumers * 128 * 8
        groups[p.producers :] = [held + 8 for held in groups[p.producers :]]
    return float(sum(groups[p.producers :]) * 128 * 4)


def _groups(number: int, what: tuple[str, str]) -> str:
    return f"{number} warp groups that {what[1]}" if number > 1 else f"1 warp group that {what[0]}"


CONSUMERS = Drill(
    key="gemm-specialised-warps",
    taught=GEMM,
    title="Registers that copying warps give up",
    unit="B",
    capacity=True,
    target_s=120,
    fewest=16,  # whole steps of eight registers, of one register file
    draw=_draw_consumers,
    small=_draw_consumers,
    wanted=lambda p: _launched(p) > p.kept,
    prompt=lambda p: (
        f"An SM with 65,536 registers of 4 bytes runs one block: {_groups(p.producers, ('copies', 'copy'))} and"
        f" {_groups(p.consumers, ('multiplies', 'multiply'))}, 128 threads each. Registers per thread come in multiples"
        " of 8, at most 256. The block is launched with as many as fit, the same number for every thread. Then threads"
        f" that copy keep {p.kept} and give the rest into the block's pool, and those that multiply take from it, all"
        " the same number. How many bytes of registers can the threads that multiply have together?"
    ),
    derive=_derive_consumers,
    count=_count_consumers,
    slips=(
        Slip("evenly", lambda p: _launched(p) * p.consumers * 128 * 4.0)
        | "That is what they are launched with. Threads that copy need fewer, and give the rest away.",
        Slip("everything", lambda p: 65536 * 4.0) | "You gave away all registers. Threads that copy keep some.",
        Slip("what-was-given", lambda p: p.producers * 128 * (_launched(p) - p.kept) * 4.0)
        | "That is what copying warps give away. Those that multiply had registers before.",
        Slip("one-group", lambda p: _consumers(p) * 128 * 4.0)
        | "That is one group. All groups that multiply are asked for.",
    ),
)

# --- registers that let blocks in ----------------------------------------------------------------

PARTS = ("a100-sxm4-80gb", "h100-sxm5", "rtx-4090")


def _draw_registers(rng: random.Random) -> Draw:
    key = rng.choice(PARTS)
    return drawn(
        part=catalogued.part(key).name,
        sm=compute_capability.multiprocessor(catalogued.part(key)),
        threads=32 * rng.randrange(3, 17),
        blocks=rng.randrange(2, 9),
    )


def _registers(p: Draw) -> int:
    return register_shares.registers_for_blocks(p.sm, blocks=p.blocks, threads_per_block=p.threads)


def _derive_registers(p: Draw) -> Derivation:
    sm, warps = p.sm, p.blocks * p.threads // 32
    return Derivation(
        value=float(_registers(p) * p.threads * 4),
        formula="threads × 4 bytes × (registers of a quarter / its warps, rounded down to the unit) / 32",
        substitution=(
            f"{p.threads} × 4 × min({sm.max_registers_per_thread}, floor({sm.registers} / {sm.register_partitions} /"
            f" ceil({warps} / {sm.register_partitions}) / {sm.register_unit}) × {sm.register_unit} / 32)"
        ),
        source=SOURCE_OCCUPANCY,
    )


def _count_registers(p: Draw) -> float:
    """A register more per thread, for as long as the scheduler admits the blocks."""
    registers = 1
    while registers < p.sm.max_registers_per_thread and (
        block_scheduler.resident_blocks(
            p.sm, threads_per_block=p.threads, registers_per_thread=registers + 1, shared_bytes_per_block=0
        )
        >= p.blocks
    ):
        registers += 1
    return float(registers * p.threads * 4)


def _fits(p: Draw) -> bool:
    warps = p.blocks * p.threads // 32
    return bool(12 <= warps <= p.sm.max_warps)


REGISTERS = Drill(
    key="gpu-registers-for-occupancy",
    taught=MODEL,
    title="How many registers a thread may use",
    unit="B",
    capacity=True,
    target_s=120,
    fewest=18,  # whole units of registers, for whole warps
    draw=_draw_registers,
    small=_draw_registers,
    wanted=_fits,
    prompt=lambda p: (
        f"On an {p.part}, {p.blocks} blocks of {p.threads} threads are to live on an SM at a time. It has"
        f" {p.sm.registers:,} registers in {p.sm.register_partitions} equal quarters; a warp lives in one quarter, the"
        f" warps are spread evenly, and each gets its registers in units of {p.sm.register_unit}. How many bytes of"
        " registers (4 each) may the threads of a block use at most?"
    ),
    derive=_derive_registers,
    count=_count_registers,
    slips=(
        Slip("not-whole-units", lambda p: p.sm.registers / p.blocks * 4)
        | "You divided the registers by the blocks. A warp gets whole units, from one quarter.",
        Slip("one-block", lambda p: min(255, p.sm.registers // p.threads // 8 * 8) * p.threads * 4.0)
        | "You gave one block everything. More blocks are to live there.",
        Slip("full-sm", lambda p: p.sm.registers // (p.sm.max_warps * 32) * p.threads * 4.0)
        | "You filled the SM with warps. Fewer are asked for, and each may have more.",
        Slip("registers", lambda p: _registers(p) * p.threads * 1.0)
        | "You counted registers. A register has four bytes.",
    ),
)

# --- stages that two blocks can have -------------------------------------------------------------


def _draw_shared(rng: random.Random) -> Draw:
    key = rng.choice(("a100-sxm4-80gb", "h100-sxm5"))
    return drawn(
        part=catalogued.part(key).name,
        sm=compute_capability.multiprocessor(catalogued.part(key)),
        blocks=rng.randrange(2, 5),
        rows=rng.randrange(48, 177, 16),
        columns=rng.randrange(48, 177, 16),
        depth=rng.choice((32, 48, 64)),
    )


def _stage_bytes(p: Draw) -> int:
    return int((p.rows + p.columns) * p.depth * 2)


def _shared_stages(p: Draw) -> int:
    return register_shares.stages_for_blocks(p.sm, blocks=p.blocks, stage_bytes=_stage_bytes(p))


def _derive_shared(p: Draw) -> Derivation:
    stage = f"(({p.rows} + {p.columns}) × {p.depth} × 2)"
    return Derivation(
        value=float(_shared_stages(p) * _stage_bytes(p)),
        formula="floor((shared memory / blocks − 1,024) / bytes of a stage) × bytes of a stage, both tiles in a stage",
        substitution=f"floor(({p.sm.shared_bytes} / {p.blocks} − 1024) / {stage}) × {stage}",
        source=SOURCE_SHARED,
    )


def _count_shared(p: Draw) -> float:
    """A stage more for each block, for as long as the scheduler admits all of them."""
    stages = 1
    while (
        block_scheduler.resident_blocks(
            p.sm,
            threads_per_block=128,
            registers_per_thread=32,
            shared_bytes_per_block=(stages + 1) * _stage_bytes(p),
        )
        >= p.blocks
    ):
        stages += 1
    return float(stages * _stage_bytes(p))


SHARED = Drill(
    key="gpu-stages-for-blocks",
    taught=MODEL,
    title="Deep pipelines or many blocks",
    unit="B",
    capacity=True,
    target_s=120,
    draw=_draw_shared,
    small=_draw_shared,
    wanted=lambda p: p.sm.shared_bytes // p.blocks > 2 * _stage_bytes(p) + 1024,
    prompt=lambda p: (
        f"A matmul keeps tiles of {p.rows} × {p.depth} and {p.depth} × {p.columns} numbers of 2 bytes in shared"
        f" memory, one of each in a stage. An SM of an {p.part} has {p.sm.shared_bytes:,} bytes of shared memory, of"
        f" which the system takes 1,024 for every block. {p.blocks} blocks are to live on the SM at a time, each with"
        " as many whole stages as fit. How many bytes of tiles does a block hold?"
    ),
    derive=_derive_shared,
    count=_count_shared,
    slips=(
        Slip("one-block", lambda p: float((p.sm.shared_bytes - 1024) // _stage_bytes(p) * _stage_bytes(p)))
        | "You gave the whole SM to one block. The others need as much.",
        Slip("not-whole-stages", lambda p: p.sm.shared_bytes / p.blocks - 1024)
        | "You filled everything. A stage that does not fit whole cannot be used.",
        Slip("all-blocks", lambda p: float(_shared_stages(p) * _stage_bytes(p) * p.blocks))
        | "That is what all blocks hold together. The question is about one.",
        Slip("one-stage", lambda p: float(_stage_bytes(p))) | "That is one stage. How many fit?",
    ),
)

DRILLS = (STAGES, LOOP, CONSUMERS, REGISTERS, SHARED)
