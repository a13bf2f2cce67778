"""Kernels to write for a small GPU: a matrix times a vector, a tiled product, a softmax, an attention row."""

import math
import random

from threeloops.drills.coding.gpu_tasks import FORGOTTEN, GAP, IMPORT, SECTION, tenths
from threeloops.drills.engine.code_task import Change
from threeloops.drills.engine.drill import Draw, drawn
from threeloops.drills.engine.functions import Value
from threeloops.drills.engine.kernel_task import Bound, KernelTask

GEMM, FUSION = "GEMM and tensor cores", "Fusion and FlashAttention"

# --- a matrix times a vector ----------------------------------------------------------------------


def vector(rng: random.Random, rows: int, columns: int) -> Draw:
    return drawn(
        blocks=-(-rows // 4),
        threads=128,
        w=tenths(rng, rows * columns),
        x=tenths(rng, columns),
        y=[0] * rows,
        rows=rows,
        columns=columns,
    )


def _count_vector(p: Draw) -> Value:
    """Column by column."""
    sums = [0.0] * p.rows
    for column, value in enumerate(p.x):
        for place in range(p.rows):
            sums[place] += p.w[place * p.columns + column] * value
    return tuple(sums)


GEMV = KernelTask(
    task="code-gpu-matvec",
    name="matvec",
    title="Write the kernel of a decode step",
    loop="inner",
    section=SECTION,
    target_s=600,
    takes=("blocks", "threads", "w", "x", "y", "rows", "columns"),
    draw=lambda rng: vector(rng, 4 * rng.randrange(1, 4) + rng.randrange(1, 4), rng.randrange(67, 99)),
    limit=lambda rng: vector(rng, 6, rng.randrange(3, 20)),
    limit_case="rows shorter than a warp is wide",
    result="y",
    head=IMPORT
    + '''def matvec(t, w, x, y, rows, columns):
    """y = w x: what decode does with every weight, once a token.

    w has `rows` rows of `columns` numbers. There are blocks of 128 threads, and
    a warp for each row. Bounds: every number of w is loaded by one thread, and
    no request touches more than 5 sectors.

    >>> run(matvec, blocks=1, threads=128, w=[1, 2, 3, 4], x=[10, 1], y=[0, 0],
    ...     rows=2, columns=2).arrays["y"]
    [12.0, 34.0]
    """
''',
    body="""    row = t.block * (t.threads // 32) + t.warp
    total = 0.0
    if row < rows:
        for k in range(t.lane, columns, 32):
            weight = yield t.load(w, row * columns + k)
            value = yield t.load(x, k)
            total += weight * value
    for far in (16, 8, 4, 2, 1):
        total += yield t.shuffle(total, t.lane ^ far)
    if row < rows and t.lane == 0:
        yield t.store(y, row, total)
""",
    gap=GAP,
    count=_count_vector,
    bounds=(
        Bound(key="uncoalesced", counter="most_sectors", most=lambda p: 5),
        Bound(key="reads-again", counter="reads w", most=lambda p: p.rows * p.columns),
    ),
    changes=(
        Change(
            key="uncoalesced",
            pairs=(
                ("t.block * (t.threads // 32) + t.warp", "t.block * t.threads + t.thread"),
                ("range(t.lane, columns, 32)", "range(columns)"),
                ("    for far in (16, 8, 4, 2, 1):\n        total += yield t.shuffle(total, t.lane ^ far)\n", ""),
                (" and t.lane == 0", ""),
            ),
            story="Uncoalesced: each thread walks a row of its own, so a warp reads in as many rows as it has lanes.",
        ),
        Change(
            key="every-lane-all",
            pairs=(("range(t.lane, columns, 32)", "range(columns)"),),
            story="Every lane added up the whole row, and then the lanes' sums were added, too.",
        ),
        Change(
            key="lane-zero",
            pairs=(("        total += yield t.shuffle(total, t.lane ^ far)\n", "        pass\n"),),
            story="You wrote lane 0's own part. The other 31 have theirs.",
        ),
        Change(
            key="reads-again",
            pairs=(
                ("range(t.lane, columns, 32)", "range(columns)"),
                ("        total += yield t.shuffle(total, t.lane ^ far)\n", "        pass\n"),
            ),
            story="Every lane reads the whole row: it is read once a lane, not once.",
        ),
    ),
    hint="A warp takes a row, its lanes neighbouring numbers; then 32 parts become one sum by shuffles.",
    source="NVIDIA, CUDA C++ Best Practices Guide 12.9, section 10.2.1 (coalesced access)",
)

# --- a tiled product ------------------------------------------------------------------------------


def product(rng: random.Random, m: int, n: int, k: int) -> Draw:
    return drawn(
        blocks=-(-m // 8) * -(-n // 8),
        threads=64,
        a=tenths(rng, m * k),
        b=tenths(rng, k * n),
        c=[0] * (m * n),
        m=m,
        n=n,
        k=k,
    )


def _count_product(p: Draw) -> Value:
    columns = [p.b[column :: p.n] for column in range(p.n)]
    lines = [p.a[place : place + p.k] for place in range(0, p.m * p.k, p.k)]
    return tuple(math.fsum(x * y for x, y in zip(line, column, strict=True)) for line in lines for column in columns)


LOOP = """        for p in range(tile):
            one = yield t.load(left, y * tile + p)
            other = yield t.load(right, p * tile + x)
            total += one * other
"""

MATMUL = KernelTask(
    task="code-gpu-tiled-matmul",
    name="multiply",
    title="Write a tiled matmul",
    loop="inner",
    section=GEMM,
    target_s=1200,
    takes=("blocks", "threads", "a", "b", "c", "m", "n", "k"),
    draw=lambda rng: product(rng, rng.randrange(9, 14), rng.randrange(9, 14), rng.randrange(17, 22)),
    limit=lambda rng: product(rng, rng.randrange(9, 16), 1, rng.randrange(9, 15)),
    limit_case="a matrix times one column",
    result="c",
    head=IMPORT
    + '''def multiply(t, a, b, c, m, n, k):
    """c = a b, for a of m x k and b of k x n, row by row.

    Tiles of c are 8 x 8: a block of 64 threads for each, counted along the rows
    of tiles. Bounds: a block loads each number that its tile needs once, into
    shared memory; no request of shared memory takes more than 1 turn.

    >>> run(multiply, blocks=1, threads=64, a=[1, 2], b=[3, 4], c=[0],
    ...     m=1, n=1, k=2).arrays["c"]
    [11.0]
    """
''',
    body="""    tile = 8
    left, right = t.shared("left", tile * tile), t.shared("right", tile * tile)
    across = -(-n // tile)
    y, x = divmod(t.thread, tile)
    row, column = t.block // across * tile + y, t.block % across * tile + x
    total = 0.0
    for start in range(0, k, tile):
        mine, yours = 0.0, 0.0
        if row < m and start + x < k:
            mine = yield t.load(a, row * k + start + x)
        if start + y < k and column < n:
            yours = yield t.load(b, (start + y) * n + column)
        yield t.store(left, y * tile + x, mine)
        yield t.store(right, y * tile + x, yours)
        yield t.barrier()
"""
    + LOOP
    + """        yield t.barrier()
    if row < m and column < n:
        yield t.store(c, row * n + column, total)
""",
    gap=GAP,
    count=_count_product,
    bounds=(
        Bound(key="reads-again", counter="reads a", most=lambda p: p.m * p.k * -(-p.n // 8)),
        Bound(key="reads-b-again", counter="reads b", most=lambda p: p.k * p.n * -(-p.m // 8)),
        Bound(key="bank-conflict", counter="most_turns", most=lambda p: 1),
    ),
    changes=(
        Change(
            key="race",
            pairs=(("        yield t.barrier()\n    if row", "    if row"),),
            story=FORGOTTEN,
        ),
        Change(
            key="last-tile-only",
            pairs=(("        mine, yours = 0.0, 0.0\n", "        mine, yours, total = 0.0, 0.0, 0.0\n"),),
            story="Your sum began anew with each tile of k: the last one is all that is left.",
        ),
        Change(
            key="tail-left-out",
            pairs=(("range(0, k, tile)", "range(0, k - tile + 1, tile)"),),
            story="You left out what k has beyond whole tiles.",
        ),
        Change(
            key="left-turned",
            pairs=(("yield t.load(left, y * tile + p)", "yield t.load(left, p * tile + y)"),),
            story="You read a's tile by columns where the matmul goes along its rows.",
        ),
        Change(
            key="reads-again",
            pairs=(
                (
                    LOOP,
                    "        for p in range(min(tile, k - start) if row < m and column < n else 0):\n"
                    "            one = yield t.load(a, row * k + start + p)\n"
                    "            other = yield t.load(b, (start + p) * n + column)\n"
                    "            total += one * other\n",
                ),
            ),
            story="No reuse: every thread loads its own row and column, so that a number is read once for each result.",
        ),
        Change(
            key="bank-conflict",
            pairs=(
                ("yield t.store(right, y * tile + x, yours)", "yield t.store(right, x * tile + y, yours)"),
                ("yield t.load(right, p * tile + x)", "yield t.load(right, x * tile + p)"),
            ),
            story="Bank conflict: neighbouring lanes touch words 8 apart, and every fourth lies in the same bank.",
        ),
    ),
    hint="Along k, tile by tile: all threads load one number of each matrix, meet, add 8 products, and meet again.",
    source="NVIDIA, CUDA C++ Programming Guide 13.3, section 6.2.4 (shared memory: matrix multiplication by blocks)",
)

# --- a softmax ------------------------------------------------------------------------------------


def scores(rng: random.Random, rows: int, columns: int, about: float) -> Draw:
    x = [round(about + rng.uniform(-2, 2), 2) for _ in range(rows * columns)]
    return drawn(blocks=rows, threads=32, x=x, y=[0] * len(x), columns=columns)


def _count_softmax(p: Draw) -> Value:
    found: list[float] = []
    for place in range(0, len(p.x), p.columns):
        line = p.x[place : place + p.columns]
        found += [1 / math.fsum(math.exp(other - one) for other in line) for one in line]
    return tuple(found)


SOFTMAX = KernelTask(
    task="code-gpu-softmax",
    name="softmax",
    title="Write a softmax that reads once",
    loop="inner",
    section=FUSION,
    target_s=720,
    takes=("blocks", "threads", "x", "y", "columns"),
    draw=lambda rng: scores(rng, rng.randrange(3, 6), rng.randrange(67, 99), 0),
    limit=lambda rng: scores(rng, 2, rng.randrange(40, 60), rng.choice((-900, 900))),
    limit_case="scores so far from zero that exp of them is 0 or too large",
    result="y",
    head="import math\n\n"
    + IMPORT
    + '''def softmax(t, x, y, columns):
    """y = the softmax of each row of x; a block of one warp for each row.

    Bounds: every number of x is loaded once (a thread may keep its own in a
    list, as in registers); no request touches more than 5 sectors.

    >>> run(softmax, blocks=1, threads=32, x=[7, 7], y=[0, 0], columns=2).arrays["y"]
    [0.5, 0.5]
    """
''',
    body="""    held, largest = [], -math.inf
    for k in range(t.lane, columns, 32):
        value = yield t.load(x, t.block * columns + k)
        held.append(value)
        largest = max(largest, value)
    for far in (16, 8, 4, 2, 1):
        other = yield t.shuffle(largest, t.lane ^ far)
        largest = max(largest, other)
    held = [math.exp(value - largest) for value in held]
    total = sum(held)
    for far in (16, 8, 4, 2, 1):
        total += yield t.shuffle(total, t.lane ^ far)
    for value, k in zip(held, range(t.lane, columns, 32)):
        yield t.store(y, t.block * columns + k, value / total)
""",
    gap=GAP,
    count=_count_softmax,
    bounds=(
        Bound(key="uncoalesced", counter="most_sectors", most=lambda p: 5),
        Bound(key="reads-again", counter="reads x", most=lambda p: len(p.x)),
    ),
    changes=(
        Change(
            key="own-total",
            pairs=(("        total += yield t.shuffle(total, t.lane ^ far)\n", "        pass\n"),),
            story="Each lane divided by the sum of its own numbers. The row has one sum.",
        ),
        Change(
            key="own-largest",
            pairs=(("        largest = max(largest, other)\n    held", "        pass\n    held"),),
            story="Each lane took off the largest of its own numbers. What is added must stand on one maximum.",
        ),
        Change(
            key="uncoalesced",
            pairs=(
                (
                    "range(t.lane, columns, 32)",
                    "range(t.lane * -(-columns // 32), min(columns, (t.lane + 1) * -(-columns // 32)))",
                ),
            ),
            story="Uncoalesced: each lane takes a piece of its own, so that neighbours read numbers that lie apart.",
        ),
        Change(
            key="reads-again",
            pairs=(
                (
                    "    held = [math.exp(value - largest) for value in held]\n",
                    "    held = []\n    for k in range(t.lane, columns, 32):\n"
                    "        value = yield t.load(x, t.block * columns + k)\n"
                    "        held.append(math.exp(value - largest))\n",
                ),
            ),
            story="You read the row a second time for the sum. It has been in registers since the first.",
        ),
    ),
    hint="Each lane keeps every 32nd number of the row; the largest and the sum go from lane to lane.",
    source="Milakov and Gimelshein, 2018, arXiv:1805.02867, section 2 (safe softmax and what it reads)",
)

# --- a row of attention ---------------------------------------------------------------------------


def heads(rng: random.Random, queries: int, keys: int, size: float) -> Draw:
    q, k, v = (
        [round(rng.choice((-1, 1)) * rng.uniform(0.2, 1) * of, 2) for _ in range(32 * number)]
        for number, of in ((queries, size), (keys, size), (keys, 5))
    )
    return drawn(blocks=queries, threads=32, q=q, k=k, v=v, o=[0] * len(q), keys=keys, scale=0.25)


def _count_attention(p: Draw) -> Value:
    """In two passes: the scores first."""
    found: list[float] = []
    for first in range(0, len(p.q), 32):
        marks = [p.scale * math.fsum(p.q[first + d] * p.k[32 * key + d] for d in range(32)) for key in range(p.keys)]
        shares = [math.exp(mark - max(marks)) for mark in marks]
        found += [
            math.fsum(share * p.v[32 * key + d] for key, share in enumerate(shares)) / math.fsum(shares)
            for d in range(32)
        ]
    return tuple(found)


PASS = """    for j in range(keys):
        key = yield t.load(k, j * 32 + t.lane)
        score = query * key
        for far in (16, 8, 4, 2, 1):
            score += yield t.shuffle(score, t.lane ^ far)
        score *= scale
"""

ATTENTION = KernelTask(
    task="code-gpu-attention-row",
    name="attend",
    title="Write attention that reads keys and values once",
    loop="inner",
    section=FUSION,
    target_s=1200,
    takes=("blocks", "threads", "q", "k", "v", "o", "keys", "scale"),
    draw=lambda rng: heads(rng, rng.randrange(2, 4), rng.randrange(5, 10), 1.0),
    limit=lambda rng: heads(rng, 2, rng.randrange(4, 8), 90.0),
    limit_case="scores of thousands, of which exp cannot be taken",
    result="o",
    head="import math\n\n"
    + IMPORT
    + '''def attend(t, q, k, v, o, keys, scale):
    """o = softmax(scale q k^T) v for heads of 32 numbers: a block of one warp a query.

    Query b is q[32 b : 32 b + 32]; keys, values and results lie likewise. Bounds:
    a block reads each number of k and v once, in requests of at most 4 sectors.

    >>> run(attend, blocks=1, threads=32, q=[1] * 32, k=[0] * 64, keys=2, scale=1,
    ...     v=[2] * 32 + [4] * 32, o=[0] * 32).arrays["o"][0]
    3.0
    """
''',
    body="""    query = yield t.load(q, t.block * 32 + t.lane)
    largest, total, out = -math.inf, 0.0, 0.0
"""
    + PASS
    + """        top = max(largest, score)
        shrink, weight = math.exp(largest - top), math.exp(score - top)
        value = yield t.load(v, j * 32 + t.lane)
        total = total * shrink + weight
        out = out * shrink + weight * value
        largest = top
    yield t.store(o, t.block * 32 + t.lane, out / total)
""",
    gap=GAP,
    count=_count_attention,
    bounds=(
        Bound(key="uncoalesced", counter="most_sectors", most=lambda p: 4),
        Bound(key="reads-again", counter="reads k", most=lambda p: p.blocks * len(p.k)),
        Bound(key="reads-values-again", counter="reads v", most=lambda p: p.blocks * len(p.v)),
    ),
    changes=(
        Change(
            key="not-rescaled",
            pairs=(("shrink, weight = math.exp(largest - top)", "shrink, weight = 1.0"),),
            story="You added to sums that still stood on the old maximum. They move to the new one first.",
        ),
        Change(
            key="only-the-sum",
            pairs=(("out * shrink", "out"),),
            story="You moved the sum of weights to the new maximum and left the weighted values on the old one.",
        ),
        Change(
            key="no-scale",
            pairs=(("        score *= scale\n", ""),),
            story="You left out the scale of the scores.",
        ),
        Change(
            key="own-products",
            pairs=(("            score += yield t.shuffle(score, t.lane ^ far)\n", "            pass\n"),),
            story="Each lane took its own product for the score. A score is the sum over the head.",
        ),
        Change(
            key="reads-again",
            pairs=(("0.0, 0.0\n", "0.0, 0.0\n" + PASS + "        largest = max(largest, score)\n"),),
            story="You went over the keys twice, first for the maximum. One pass can carry it along.",
        ),
        Change(
            key="uncoalesced",
            pairs=(
                (
                    PASS,
                    """    marks, own = {}, [query]
    for d in range(1, 32):
        own.append((yield t.shuffle(query, t.lane ^ d)))
    for j in range(t.lane, keys, 32):
        marks[j] = 0.0
        for d in range(32):
            marks[j] += own[t.lane ^ d] * (yield t.load(k, j * 32 + d))
        marks[j] *= scale
    for j in range(keys):
        score = yield t.shuffle(marks.get(j, 0.0), j % 32)
""",
                ),
            ),
            story="Uncoalesced: each lane takes a key of its own, and neighbours read numbers a whole head apart.",
        ),
    ),
    hint="A lane for each of the 32 numbers: a score is a sum over lanes. Carry largest, sum and result along.",
    source="Milakov and Gimelshein, 2018, arXiv:1805.02867 (running softmax); Dao et al., 2022, arXiv:2205.14135",
)

TASKS = (GEMV, MATMUL, SOFTMAX, ATTENTION)
