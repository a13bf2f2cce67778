"""Kernels to write for a small GPU: a transpose, a sum, a histogram, a scan."""

import itertools
import random

from threeloops.drills.engine.code_task import Change
from threeloops.drills.engine.drill import Draw, drawn
from threeloops.drills.engine.functions import Value
from threeloops.drills.engine.kernel_task import MACHINE, Bound, KernelTask

SECTION = "The programming model"
IMPORT = f"""from {MACHINE} import run

# value = yield t.load(x, i)      yield t.store(x, i, value)
# old = yield t.add(x, i, 1)      other = yield t.shuffle(value, lane)
# own = t.shared("own", words)    yield t.barrier()
# t.thread of t.threads, t.block of t.blocks, t.lane, t.warp: as in CUDA


"""
GAP = "    raise NotImplementedError"
FORGOTTEN = "A barrier is missing: a thread read or wrote what one of another warp had not done with."


def tenths(rng: random.Random, number: int) -> list[float]:
    """Numbers of one decimal, none of them 0."""
    return [rng.choice((-1, 1)) * rng.randrange(1, 90) / 10 for _ in range(number)]


# --- transpose ------------------------------------------------------------------------------------


def matrix(rng: random.Random, rows: int, columns: int) -> Draw:
    return drawn(
        blocks=-(-rows // 32) * -(-columns // 32),
        threads=128,
        x=list(range(1, rows * columns + 1)) if rng.random() < 0.5 else list(range(rows * columns, 0, -1)),
        y=[0] * (rows * columns),
        rows=rows,
        columns=columns,
    )


TRANSPOSE = KernelTask(
    task="code-gpu-transpose",
    name="transpose",
    title="Write a transpose without bank conflicts",
    loop="inner",
    section=SECTION,
    target_s=900,
    takes=("blocks", "threads", "x", "y", "rows", "columns"),
    draw=lambda rng: matrix(rng, rng.randrange(33, 39), rng.randrange(37, 48)),
    limit=lambda rng: matrix(rng, 1, rng.randrange(37, 70)),
    limit_case="a matrix of one row",
    result="y",
    head=IMPORT
    + '''def transpose(t, x, y, rows, columns):
    """y = x transposed, by tiles of 32 x 32: a block of 128 threads for each.

    x holds `rows` rows of `columns` numbers, row after row; y holds `columns` rows
    of `rows`. Block b takes tile b of x, counted from left to right, then down.
    Bounds: no request of a warp touches more than 5 sectors of global memory (32
    neighbouring numbers lie in at most 5); none of shared memory takes more than
    1 turn.

    >>> run(transpose, blocks=1, threads=128, x=[1, 2], y=[0, 0], rows=2,
    ...     columns=1).arrays["y"]
    [1, 2]
    """
''',
    body="""    pitch = 33
    tile = t.shared("tile", 32 * pitch)
    across = -(-columns // 32)
    top, left = t.block // across * 32, t.block % across * 32
    for down in range(t.warp, 32, t.threads // 32):
        if top + down < rows and left + t.lane < columns:
            value = yield t.load(x, (top + down) * columns + left + t.lane)
            yield t.store(tile, down * pitch + t.lane, value)
    yield t.barrier()
    for down in range(t.warp, 32, t.threads // 32):
        if left + down < columns and top + t.lane < rows:
            value = yield t.load(tile, t.lane * pitch + down)
            yield t.store(y, (left + down) * rows + top + t.lane, value)
""",
    gap=GAP,
    count=lambda p: tuple(p.x[row * p.columns + column] for column in range(p.columns) for row in range(p.rows)),
    bounds=(
        Bound(key="uncoalesced", counter="most_sectors", most=lambda p: 5),
        Bound(key="bank-conflict", counter="most_turns", most=lambda p: 1),
    ),
    changes=(
        Change(
            key="uncoalesced",
            pairs=(
                (
                    "            yield t.store(tile, down * pitch + t.lane, value)\n",
                    "            yield t.store(y, (left + t.lane) * rows + top + down, value)\n",
                ),
                ("    yield t.barrier()\n    for down in range(t.warp, 32, t.threads // 32):", "    for down in ():"),
            ),
            story="Uncoalesced: neighbouring lanes touch numbers a whole row apart, each in a sector of its own.",
        ),
        Change(
            key="bank-conflict",
            pairs=(("pitch = 33", "pitch = 32"),),
            story="Bank conflict: a column of your tile lies in one bank, so its lanes are served one after the other.",
        ),
        Change(key="race", pairs=(("    yield t.barrier()\n", ""),), story=FORGOTTEN),
        Change(
            key="not-turned",
            pairs=(("t.lane * pitch + down", "down * pitch + t.lane"),),
            story="You moved the tiles to their new places and did not turn what is in them.",
        ),
    ),
    hint="Read and write global memory along rows, both times; turn the tile in shared memory. In which bank does each"
    " number of a column of the tile lie?",
    source="NVIDIA, CUDA C++ Best Practices Guide 12.9, section 10.2.3.3 (a matrix times its transpose: a padded tile)",
)

# --- a sum per block ------------------------------------------------------------------------------


def numbers(rng: random.Random, blocks: int, threads: int, n: int) -> Draw:
    return drawn(blocks=blocks, threads=threads, x=tenths(rng, n), sums=[0] * blocks, n=n)


def _draw_sums(rng: random.Random) -> Draw:
    blocks, threads = rng.randrange(2, 5), rng.choice((64, 96, 128))
    return numbers(rng, blocks, threads, blocks * threads - rng.randrange(3, 30))


SHUFFLES = "    for far in (16, 8, 4, 2, 1):\n        value += yield t.shuffle(value, t.lane ^ far)\n"

SUMS = KernelTask(
    task="code-gpu-block-sum",
    name="block_sums",
    title="Write a reduction with shuffles",
    loop="inner",
    section=SECTION,
    target_s=720,
    takes=("blocks", "threads", "x", "sums", "n"),
    draw=_draw_sums,
    limit=lambda rng: numbers(rng, 1, 64, rng.randrange(1, 6)),
    limit_case="fewer numbers than a warp has lanes",
    result="sums",
    head=IMPORT
    + '''def block_sums(t, x, sums, n):
    """sums[b] = the sum of the numbers that the threads of block b have.

    Thread i of the grid has x[i]; threads from n on have nothing to add. Blocks
    are of whole warps. Bounds: no atomics; a block makes one request to shared
    memory for each of its warps and one more, and meets at one barrier: within
    a warp, numbers go from lane to lane.

    >>> run(block_sums, blocks=1, threads=32, x=[1, 2, 3], sums=[0], n=3).arrays["sums"]
    [6.0]
    """
''',
    body="""    i = t.block * t.threads + t.thread
    value = 0.0
    if i < n:
        value = yield t.load(x, i)
    for far in (16, 8, 4, 2, 1):
        value += yield t.shuffle(value, t.lane ^ far)
    warps = t.threads // 32
    parts = t.shared("parts", warps)
    if t.lane == 0:
        yield t.store(parts, t.warp, value)
    yield t.barrier()
    if t.warp == 0:
        value = 0.0
        if t.lane < warps:
            value = yield t.load(parts, t.lane)
        for step in (16, 8, 4, 2, 1):
            value += yield t.shuffle(value, t.lane ^ step)
        if t.lane == 0:
            yield t.store(sums, t.block, value)
""",
    gap=GAP,
    count=lambda p: tuple(
        float(sum(p.x[block * p.threads : min(p.n, (block + 1) * p.threads)])) for block in range(p.blocks)
    ),
    bounds=(
        Bound(key="atomics", counter="atomics", most=lambda p: 0),
        Bound(key="all-through-shared", counter="shared_requests", most=lambda p: p.blocks * (p.threads // 32 + 1)),
        Bound(key="more-barriers", counter="barriers", most=lambda p: p.blocks),
    ),
    changes=(
        Change(key="race", pairs=(("    yield t.barrier()\n", ""),), story=FORGOTTEN),
        Change(
            key="half-a-warp",
            pairs=(("for far in (16, 8, 4, 2, 1)", "for far in (8, 4, 2, 1)"),),
            story="You added half of each warp: a lane's furthest partner is 16 lanes away.",
        ),
        Change(
            key="first-warp",
            pairs=(("if t.lane < warps:", "if t.lane < 1:"),),
            story="You kept the first warp's sum alone. Every warp of the block has one.",
        ),
        Change(
            key="atomics",
            pairs=(
                (
                    f"{SHUFFLES}    warps",
                    "    yield t.add(sums, t.block, value)\n    return\n    warps",
                ),
            ),
            story="You sent each number to global memory by an atomic; all of a block wait for one address.",
        ),
        Change(
            key="all-through-shared",
            pairs=(
                (
                    f"{SHUFFLES}    warps",
                    "    warps",
                ),
                ('t.shared("parts", warps)', 't.shared("parts", t.threads)'),
                (
                    "    if t.lane == 0:\n        yield t.store(parts, t.warp, value)",
                    "    yield t.store(parts, t.thread, value)",
                ),
                (
                    "        if t.lane < warps:\n            value = yield t.load(parts, t.lane)",
                    "        for k in range(t.lane, t.threads, 32):\n            value += yield t.load(parts, k)",
                ),
            ),
            story="You sent every number through shared memory; the lanes of a warp can hand theirs to one another.",
        ),
        Change(
            key="more-barriers",
            pairs=(("    if t.warp == 0:\n", "    yield t.barrier()\n    if t.warp == 0:\n"),),
            story="You made all warps wait more often than needed; lanes of a warp go in step.",
        ),
    ),
    hint="First a sum in every warp, with partners 16, 8, 4, 2 and 1 lanes away; then one warp adds the warps' sums.",
    source="NVIDIA, CUDA C++ Programming Guide 13.3, section 10.22.3.3 (reduction across a warp)",
)

# --- a histogram ----------------------------------------------------------------------------------


def pixels(rng: random.Random, blocks: int, n: int, bins: int, *, one: bool = False) -> Draw:
    which = rng.randrange(bins)
    return drawn(
        blocks=blocks,
        threads=64,
        x=[which if one else min(rng.randrange(bins), rng.randrange(bins)) for _ in range(n)],
        bins=[0] * bins,
        n=n,
    )


def _draw_pixels(rng: random.Random) -> Draw:
    blocks = rng.randrange(2, 4)
    return pixels(rng, blocks, blocks * 64 * 2 + rng.randrange(5, 60), rng.randrange(5, 13))


def _count_pixels(p: Draw) -> Value:
    return tuple(p.x.count(which) for which in range(len(p.bins)))


HISTOGRAM = KernelTask(
    task="code-gpu-histogram",
    name="histogram",
    title="Write a histogram with atomics",
    loop="inner",
    section=SECTION,
    target_s=720,
    takes=("blocks", "threads", "x", "bins", "n"),
    draw=_draw_pixels,
    limit=lambda rng: pixels(rng, 2, rng.randrange(130, 170), 7, one=True),
    limit_case="every number falls into the same bin",
    result="bins",
    head=IMPORT
    + '''def histogram(t, x, bins, n):
    """bins[v] += how often v stands among the n whole numbers of x.

    There may be more numbers than threads, and at most 32 bins (len(bins.numbers)).
    Bounds: no request touches more than 4 sectors; each block makes one atomic
    request to global memory, when it has counted all of its numbers.

    >>> run(histogram, blocks=1, threads=32, x=[1, 0, 1], bins=[0, 0],
    ...     n=3).arrays["bins"]
    [1, 2]
    """
''',
    body="""    k = len(bins.numbers)
    own = t.shared("own", k)
    if t.thread < k:
        yield t.store(own, t.thread, 0)
    yield t.barrier()
    for i in range(t.block * t.threads + t.thread, n, t.blocks * t.threads):
        which = yield t.load(x, i)
        yield t.add(own, which, 1)
    yield t.barrier()
    if t.thread < k:
        counted = yield t.load(own, t.thread)
        yield t.add(bins, t.thread, counted)
""",
    gap=GAP,
    count=_count_pixels,
    bounds=(
        Bound(key="uncoalesced", counter="most_sectors", most=lambda p: 4),
        Bound(key="atomics", counter="atomics", most=lambda p: p.blocks),
    ),
    changes=(
        Change(key="race", pairs=(("    yield t.barrier()\n", ""),), story=FORGOTTEN),
        Change(
            key="lost-updates",
            pairs=(
                (
                    "        yield t.add(own, which, 1)",
                    "        seen = yield t.load(own, which)\n        yield t.store(own, which, seen + 1)",
                ),
            ),
            story="You read a count, added to it and wrote it back. Of lanes with the same bin one addition stays.",
        ),
        Change(
            key="not-zeroed",
            pairs=(("    if t.thread < k:\n        yield t.store(own, t.thread, 0)\n    yield t.barrier()\n", ""),),
            story="Shared memory begins as whatever stood there. Your counts begin from that.",
        ),
        Change(
            key="once-each",
            pairs=(("n, t.blocks * t.threads", "n, n"),),
            story="Each of your threads took one number. There are more numbers than threads.",
        ),
        Change(
            key="atomics",
            pairs=(("yield t.add(own, which, 1)", "yield t.add(bins, which, 1)"),),
            story="Every number goes to global memory by an atomic. A block can count its own first.",
        ),
        Change(
            key="uncoalesced",
            pairs=(
                (
                    "    for i in range(t.block * t.threads + t.thread, n, t.blocks * t.threads):",
                    "    per = -(-n // (t.blocks * t.threads))\n"
                    "    first = (t.block * t.threads + t.thread) * per\n"
                    "    for i in range(first, min(n, first + per)):",
                ),
            ),
            story="Uncoalesced: each of your threads takes a piece of its own, so that its lanes lie apart.",
        ),
    ),
    hint="Each block counts in shared memory, from zero; its threads step through x by the size of the grid.",
    source="NVIDIA, CUDA C++ Programming Guide 13.3, section 10.14 (atomic functions)",
)

# --- a scan ---------------------------------------------------------------------------------------


def row(rng: random.Random, threads: int, n: int) -> Draw:
    return drawn(blocks=1, threads=threads, x=[rng.randrange(1, 90) for _ in range(n)], y=[0] * n, n=n)


def _draw_row(rng: random.Random) -> Draw:
    threads = rng.choice((64, 128))
    return row(rng, threads, threads - rng.randrange(2, 20))


SCAN = KernelTask(
    task="code-gpu-scan",
    name="scan",
    title="Write a scan",
    loop="inner",
    section=SECTION,
    target_s=900,
    takes=("blocks", "threads", "x", "y", "n"),
    draw=_draw_row,
    limit=lambda rng: row(rng, 64, 1),
    limit_case="one number",
    result="y",
    head=IMPORT
    + '''def scan(t, x, y, n):
    """y[i] = x[0] + ... + x[i], for the n numbers of one block.

    There are at least n threads, a power of two. Bounds: each number of x is
    loaded once; the block has at most 2 log2(threads) + 1 barriers.

    >>> run(scan, blocks=1, threads=32, x=[1, 2, 3], y=[0, 0, 0], n=3).arrays["y"]
    [1, 3, 6]
    """
''',
    body="""    held = t.shared("held", t.threads)
    value = 0
    if t.thread < n:
        value = yield t.load(x, t.thread)
    yield t.store(held, t.thread, value)
    yield t.barrier()
    far = 1
    while far < t.threads:
        other = 0
        if t.thread >= far:
            other = yield t.load(held, t.thread - far)
        yield t.barrier()
        value += other
        yield t.store(held, t.thread, value)
        yield t.barrier()
        far *= 2
    if t.thread < n:
        yield t.store(y, t.thread, value)
""",
    gap=GAP,
    count=lambda p: tuple(itertools.accumulate(p.x)),
    bounds=(
        Bound(key="reads-again", counter="reads x", most=lambda p: p.n),
        Bound(key="one-after-the-other", counter="barriers", most=lambda p: 2 * (p.threads.bit_length() - 1) + 1),
    ),
    changes=(
        Change(
            key="race",
            pairs=(("        yield t.barrier()\n        value += other", "        value += other"),),
            story=FORGOTTEN,
        ),
        Change(
            key="exclusive",
            pairs=(
                (
                    "    if t.thread < n:\n        yield t.store(y, t.thread, value)",
                    "    if t.thread + 1 < n:\n        yield t.store(y, t.thread + 1, value)",
                ),
            ),
            story="That is the exclusive scan: a number's own value belongs to its sum here.",
        ),
        Change(
            key="one-warp",
            pairs=(("while far < t.threads", "while far < 32"),),
            story="Your sums reach 32 numbers back. The block is wider than a warp.",
        ),
        Change(
            key="step-by-one",
            pairs=(("far *= 2", "far += 1"),),
            story="Your distance grows by one. After a step each sum covers twice as many numbers as before.",
        ),
        Change(
            key="reads-again",
            pairs=(
                (
                    "        value = yield t.load(x, t.thread)\n",
                    "        for k in range(t.thread + 1):\n            value += yield t.load(x, k)\n",
                ),
                ("far = 1", "far = t.threads"),
            ),
            story="Each thread loads all numbers before its own: x is read n / 2 times.",
        ),
        Change(
            key="one-after-the-other",
            pairs=(
                (
                    "        other = 0\n        if t.thread >= far:\n"
                    "            other = yield t.load(held, t.thread - far)\n",
                    "        other = 0\n        if t.thread == far:\n"
                    "            other = yield t.load(held, t.thread - 1)\n",
                ),
                ("far *= 2", "far += 1"),
            ),
            story="Your threads add one after the other. All can add at once, over distances that double.",
        ),
    ),
    hint="In step s every thread adds what stands 2^s to its left. Who may still be reading when you write?",
    source="Hillis and Steele, Data parallel algorithms, Communications of the ACM 29(12), 1986, doi:10.1145/7902.7903",
)

TASKS = (TRANSPOSE, SUMS, HISTOGRAM, SCAN)
