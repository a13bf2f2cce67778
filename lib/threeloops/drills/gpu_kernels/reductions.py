"""Drills on kernels that reduce: shuffles, trees, histograms, a softmax over rows."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, changed, drawn
from threeloops.inner_loop.kernels import reductions, softmax_rows
from threeloops.units import TB, million, ns, thousand

MODEL = Taught("inner", "The programming model")
FUSION = Taught("inner", "Fusion and FlashAttention")

SOURCE_SHUFFLE = "Apache TVM, tirx.backend.cuda.op.warp_reduce and cta_reduce, documentation, 2026"
SOURCE_COUNT = "by definition, 2026: every step and every atomic counted"
SOURCE_SOFTMAX = (
    "Milakov, Gimelshein, Online normalizer calculation for softmax, 2018, arXiv:1805.02867, sections 2 and 3"
)

# --- shuffles ------------------------------------------------------------------------------------


def _derive_shuffles(p: Draw) -> Derivation:
    warps = p.threads // 32
    return Derivation(
        value=float(reductions.shuffle_instructions(blocks=p.blocks, threads_per_block=p.threads)),
        formula="blocks × (warps × log2(32) + ceil(log2(warps)))",
        substitution=f"{p.blocks} × ({warps} × log2(32) + ceil(log2({warps})))",
        source=SOURCE_SHUFFLE,
    )


def _count_shuffles(p: Draw) -> float:
    """Warps that halve the distance until one lane holds everything, block by block."""
    issued = 0
    for _ in range(p.blocks):
        found = []
        for _warp in range(p.threads // 32):
            lanes = [1] * 32
            while len(lanes) > 1:
                half = len(lanes) // 2
                lanes = [lanes[i] + lanes[i + half] for i in range(half)]
                issued += 1
            found.append(lanes[0])
        while len(found) > 1:
            half = -(-len(found) // 2)
            found = [found[i] + (found[i + half] if i + half < len(found) else 0) for i in range(half)]
            issued += 1
        assert found == [p.threads]
    return float(issued)


SHUFFLES = Drill(
    key="gpu-shuffle-sum",
    taught=MODEL,
    title="A sum that never leaves the registers",
    unit="",
    whole="exact",
    loose="digits",
    target_s=90,
    draw=lambda rng: drawn(
        blocks=rng.randrange(130, 990, 3), threads=32 * rng.choice((5, 6, 7, 9, 10, 11, 12, 14, 18, 20, 24))
    ),
    small=lambda rng: drawn(
        blocks=rng.randrange(2, 9), threads=32 * rng.choice((5, 6, 7, 9, 10, 11, 12, 14, 18, 20, 24))
    ),
    prompt=lambda p: (
        f"A kernel of {p.blocks} blocks with {p.threads} threads each adds up one number per thread. First each warp"
        " adds its 32 numbers with shuffles, half the distance at each step; then one warp of the block adds the"
        " results of the warps in the same way, with as few steps as will do. How many shuffle instructions do the"
        " warps issue altogether?"
    ),
    derive=_derive_shuffles,
    count=_count_shuffles,
    slips=(
        Slip("one-per-lane", lambda p: p.blocks * p.threads / 32 * 31.0)
        | "You shuffled lane after lane. A step adds half of what is left, for all lanes at once.",
        Slip(
            "per-thread", lambda p: 32.0 * reductions.shuffle_instructions(blocks=p.blocks, threads_per_block=p.threads)
        )
        | "You counted each thread's shuffle. An instruction is issued once for the whole warp.",
        Slip("one-warp", lambda p: p.blocks * 5.0)
        | "You counted one warp of each block. The others add their numbers, too.",
        Slip("tree-of-the-block", lambda p: p.blocks * 10.0)
        | "You counted the steps of one tree over the block. Each warp issues its own.",
        Slip("one-block", lambda p: reductions.shuffle_instructions(blocks=1, threads_per_block=p.threads) * 1.0)
        | "That is one block. The grid has more.",
    ),
    near=(
        Slip("warps-not-joined", lambda p: p.blocks * p.threads / 32 * 5.0)
        | "You stopped at one number per warp. How does the block come to one?",
    ),
)

# --- a tree in shared memory ---------------------------------------------------------------------


def _derive_tree(p: Draw) -> Derivation:
    steps = f"log2({p.numbers})"
    return Derivation(
        value=(1 - reductions.tree_busy_share(numbers=p.numbers))
        * p.blocks
        * (p.numbers // 2)
        * (p.numbers.bit_length() - 1)
        * p.step_ns
        * ns,
        formula="blocks × time of a step × (numbers / 2 × steps − (numbers − 1))",
        substitution=f"{p.blocks} × {p.step_ns}e-9 × ({p.numbers} / 2 × {steps} − ({p.numbers} − 1))",
        source=SOURCE_COUNT,
    )


def _count_tree(p: Draw) -> float:
    """Threads without a pair, step by step."""
    idle, left = 0, p.numbers
    while left > 1:
        idle += p.numbers // 2 - left // 2
        left //= 2
    return float(idle * p.step_ns * p.blocks) * ns


TREE = Drill(
    key="gpu-tree-waiting",
    taught=MODEL,
    title="Threads that wait at the barrier",
    unit="s",
    target_s=120,
    draw=lambda rng: drawn(
        numbers=2 ** rng.randrange(6, 12), step_ns=rng.randrange(21, 99), blocks=rng.randrange(3, 40)
    ),
    small=lambda rng: drawn(
        numbers=2 ** rng.randrange(2, 7), step_ns=rng.randrange(21, 99), blocks=rng.randrange(3, 40)
    ),
    prompt=lambda p: (
        f"A block adds {p.numbers} numbers in shared memory with {p.numbers // 2} threads: in the first step each"
        " thread adds a pair, in the next half of them, and so on to the last sum. After each step all wait at a"
        f" barrier; a step takes {p.step_ns} ns. Summed over all threads of {p.blocks} such blocks, how much time is"
        " spent without an addition?"
    ),
    derive=_derive_tree,
    count=_count_tree,
    slips=(
        Slip("busy-share", lambda p: p.blocks * p.step_ns * ns * (p.numbers - 1))
        | "You summed the time of the additions. The question is about the threads that make none.",
        Slip("half-waits", lambda p: p.blocks * p.step_ns * ns * p.numbers / 4 * (p.numbers.bit_length() - 1))
        | "You let half of the threads wait at every step. At first none waits, at the end all but one.",
        Slip("all-threads", lambda p: p.blocks * p.step_ns * ns * p.numbers / 2 * (p.numbers.bit_length() - 1))
        | "You counted all threads at all steps. Some of them add.",
        Slip(
            "thread-per-number",
            lambda p: p.blocks * p.step_ns * ns * (p.numbers * (p.numbers.bit_length() - 1) - (p.numbers - 1)),
        )
        | "You used a thread for each number. There is one for each pair.",
        Slip("one-block", lambda p: _derive_tree(p).value / p.blocks) | "That is one block. There are more.",
    ),
)

# --- a histogram ---------------------------------------------------------------------------------


def _draw_histogram(rng: random.Random) -> Draw:
    return drawn(
        millions=rng.randrange(210, 399),  # above all answers
        per_block=rng.choice((4096, 6144, 8192, 12288)),
        bins=rng.choice((64, 128, 256)),
    )


def _elements(p: Draw) -> int:
    elements: int = round(p.millions * million)
    return elements


def _derive_histogram(p: Draw) -> Derivation:
    return Derivation(
        value=_elements(p)
        / reductions.global_atomics(elements=_elements(p), elements_per_block=p.per_block, bins=p.bins),
        formula="elements / (ceil(elements / elements of a block) × bins)",
        substitution=f"{_elements(p)} / (ceil({_elements(p)} / {p.per_block}) × {p.bins})",
        source=SOURCE_COUNT,
    )


def _count_histogram(p: Draw) -> float:
    """Element by element, a block at a time, then each block's bins into the result."""
    direct = merged = left = 0
    for _ in range(_elements(p)):
        direct += 1
        if left == 0:
            merged, left = merged + sum(1 for _ in range(p.bins)), p.per_block
        left -= 1
    return direct / merged


HISTOGRAM = Drill(
    key="gpu-private-histogram",
    taught=MODEL,
    title="A histogram in every block",
    unit="",
    target_s=90,
    draw=_draw_histogram,
    small=lambda rng: drawn(
        millions=rng.randrange(2, 9) * thousand / million,
        per_block=rng.choice((96, 112, 160, 224)),
        bins=rng.choice((4, 8, 16)),
    ),
    prompt=lambda p: (
        f"A histogram of {p.millions} million numbers has {p.bins} bins. The first kernel adds each number to its bin"
        f" in global memory with an atomic. The second gives every block {p.per_block:,} numbers, counts them in bins"
        " in shared memory, and then adds each bin of the block to global memory with one atomic. By what"
        " factor do fewer atomics reach global memory?"
    ),
    derive=_derive_histogram,
    count=_count_histogram,
    slips=(
        Slip("one-per-block", lambda p: float(p.per_block))
        | "You let a block add one number to the result. It has a number for each bin.",
        Slip("one-histogram", lambda p: _elements(p) / p.bins) | "You added the bins once. Every block adds its own.",
        Slip("shared-atomics-too", lambda p: 1 / (1 + p.bins / p.per_block))
        | "You counted the atomics in shared memory, too. They do not reach global memory.",
        Slip("upside-down", lambda p: 1 / _derive_histogram(p).value)
        | "That is how many are left for each one there was. The question asks the inverse.",
    ),
)

# --- a softmax over rows -------------------------------------------------------------------------


def _draw_softmax(rng: random.Random) -> Draw:
    return drawn(
        rows=rng.randrange(300, 4000, 7),
        columns=rng.choice((32_000, 50_257, 65_024, 100_352, 128_256, 151_936, 152_064)),
        bytes_per_element=rng.choice((2, 4)),
        tb_per_s=rng.choice((1.55, 2.04, 3.35, 4.8)),
    )


def _moved(p: Draw, kind: str) -> float:
    return softmax_rows.softmax_bytes(rows=p.rows, columns=p.columns, bytes_per_element=p.bytes_per_element, kind=kind)


def _count_softmax(p: Draw) -> float:
    """A row at a time: maximum and sum in one pass, the quotients in another, every access counted."""
    moved = 0.0
    for _row in range(p.rows):
        moved += sum(p.bytes_per_element for _ in range(p.columns))
        for _column in range(p.columns):
            moved += p.bytes_per_element  # read again
            moved += p.bytes_per_element  # and its quotient written
    return float(moved / (p.tb_per_s * TB))


SOFTMAX = Drill(
    key="gpu-online-softmax",
    taught=FUSION,
    title="A softmax that reads twice",
    unit="s",
    target_s=90,
    draw=_draw_softmax,
    small=lambda rng: changed(_draw_softmax(rng), rows=rng.randrange(2, 6), columns=rng.randrange(20, 90)),
    prompt=lambda p: (
        f"A kernel takes the softmax of {p.rows} rows of {p.columns:,} numbers of {p.bytes_per_element} bytes and"
        " writes it in the same format. Nothing of a row stays on the chip between two passes. It finds a row's"
        " maximum and its sum in one pass, with the online softmax, and makes the quotients in another. Memory gives"
        f" {p.tb_per_s} TB/s. How long does it take at least?"
    ),
    derive=lambda p: Derivation(
        value=_moved(p, "online") / (p.tb_per_s * TB),
        formula="rows × columns × bytes per element × (2 reads + 1 write) / bandwidth",
        substitution=f"{p.rows} × {p.columns} × {p.bytes_per_element} × (2 + 1) / {p.tb_per_s}e12",
        source=SOURCE_SOFTMAX,
    ),
    count=_count_softmax,
    slips=(
        Slip("three-passes", lambda p: _moved(p, "safe") / (p.tb_per_s * TB))
        | "You read each row three times: that is the softmax with a pass for the maximum alone.",
        Slip("read-once", lambda p: _moved(p, "in registers") / (p.tb_per_s * TB))
        | "You read each row once. The quotients need the finished sum, and the row is no longer on the chip.",
        Slip("write-forgotten", lambda p: _moved(p, "online") / (p.tb_per_s * TB) / 3)
        | "You moved every number once. Count reads, and what is written.",
        Slip("elements", lambda p: _moved(p, "online") / p.bytes_per_element / (p.tb_per_s * TB))
        | "You moved numbers where the bandwidth is in bytes.",
    ),
)

DRILLS = (SHUFFLES, TREE, HISTOGRAM, SOFTMAX)
