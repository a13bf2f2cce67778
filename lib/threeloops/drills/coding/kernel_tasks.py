"""Code of the inner loop: a kernel's sectors, a softmax in one pass, the tiles of a causal attention."""

import math
import random

from threeloops.drills.engine.code_task import Change, CodeTask
from threeloops.drills.engine.drill import Draw, drawn
from threeloops.drills.engine.searches import wanted
from threeloops.inner_loop import coalescing

# --- read a kernel and say its sectors ------------------------------------------------------------


def _draw_sectors(rng: random.Random) -> Draw:
    """Rows so far apart that no two of them share a sector, and numbers in which the mistakes differ."""

    def draw() -> Draw:
        width, size = rng.choice((4, 8)), rng.choice((2, 8))
        return drawn(first=rng.randrange(1, 40), width=width, pitch=rng.randrange(71, 300, 2), size=size)

    def fits(p: Draw) -> bool:
        reads = [p.first + thread // p.width * p.pitch + thread % p.width for thread in range(coalescing.LANES)]
        row = range(p.first, p.first + coalescing.LANES)
        counted = [
            len({index * bytes_each // of for index in read})
            for read, bytes_each, of in ((reads, p.size, 32), (reads, p.size, 128), (reads, 1, 32), (row, p.size, 32))
        ]
        return len(set(counted)) == len(counted)

    return wanted(draw, fits)


def _count_sectors(p: Draw) -> int:
    """Row by row, by the formula for neighbours."""
    return sum(
        coalescing.sectors_per_request(
            stride_elements=1,
            bytes_per_element=p.size,
            first_byte=(p.first + row * p.pitch) * p.size,
            lanes=p.width,
        )
        for row in range(coalescing.LANES // p.width)
    )


SECTORS = CodeTask(
    task="code-sectors",
    name="sectors",
    title="Read a kernel, say its sectors",
    loop="inner",
    section="The programming model",
    target_s=300,
    takes=("first", "width", "pitch", "size"),
    draw=_draw_sectors,
    limit=lambda rng: drawn(first=0, width=32, pitch=rng.randrange(40, 90), size=rng.choice((4, 8))),
    limit_case="one row that begins on a boundary: a fully coalesced load",
    head='''def sectors(first, width, pitch, size):
    """Sectors of 32 bytes that one warp's load touches.

    The kernel, in which the threads t = 0, 1, ... 31 make one request:

        T v = a[first + (t / width) * pitch + t % width];  // whole division

    An element of type T has `size` bytes; a[0] lies where a sector begins.

    >>> sectors(first=0, width=16, pitch=100, size=4)
    5
    """
''',
    body="""    touched = set()
    for thread in range(32):
        index = first + thread // width * pitch + thread % width
        touched.add(index * size // 32)
    return len(touched)
""",
    gap="    raise NotImplementedError",
    count=_count_sectors,
    changes=(
        Change(
            key="per-thread",
            pairs=(("index * size // 32", "thread"),),
            story="You counted one transaction for each thread. Threads whose bytes lie in one sector share it.",
        ),
        Change(
            key="elements",
            pairs=(("index * size // 32", "index // 32"),),
            story="You put 32 elements into a sector. It holds 32 bytes.",
        ),
        Change(
            key="lines",
            pairs=(("// 32)", "// 128)"),),
            story="You counted whole cache lines of 128 bytes. Memory is read by sectors, a quarter of that.",
        ),
        Change(
            key="as-one-row",
            pairs=(("thread // width * pitch", "thread // width * width"),),
            story="You let the rows follow one another without a gap. Each begins a pitch after the one before.",
        ),
        Change(
            key="least",
            pairs=(("return len(touched)", "return size"),),
            story="You divided the bytes that are asked for by 32: the least there can be. These rows begin anywhere.",
        ),
    ),
    hint="Write down the byte at which each thread reads, and which sector it lies in.",
    source="NVIDIA, CUDA C++ Best Practices Guide 12.9, section 10.2.1 (coalesced access)",
)

# --- finish an online softmax ---------------------------------------------------------------------


def _scores(rng: random.Random, low: float, high: float) -> Draw:
    number = rng.randrange(7, 10)
    return drawn(
        scores=[round(rng.uniform(low, high), 1) for _ in range(number)],
        values=[rng.randrange(1, 10) for _ in range(number)],
        block=3,
    )


def _draw_softmax(rng: random.Random) -> Draw:
    """The largest score stands in the last block, and the first one's largest is not among the small ones."""

    def fits(p: Draw) -> bool:
        tops = [max(p.scores[start : start + p.block]) for start in range(0, len(p.scores), p.block)]
        return bool(tops[0] + 0.4 < tops[-1] == max(tops))

    return wanted(lambda: _scores(rng, -3, 3), fits)


def _count_softmax(p: Draw) -> float:
    """In two passes: the maximum first."""
    top = max(p.scores)
    weights = [math.exp(score - top) for score in p.scores]
    return float(sum(weight * value for weight, value in zip(weights, p.values, strict=True)) / sum(weights))


SOFTMAX = CodeTask(
    task="code-online-softmax",
    name="attend",
    title="Finish an online softmax",
    loop="inner",
    section="Fusion and FlashAttention",
    target_s=360,
    takes=("scores", "values", "block"),
    draw=_draw_softmax,
    limit=lambda rng: _scores(rng, -990, -960),
    limit_case="scores so far below zero that exp of each of them is 0",
    head='''import math


def attend(scores, values, block):
    """The mean of the values, weighted by a softmax of the scores, in one pass.

    Scores come `block` at a time and are not read again. What is carried from
    block to block: the largest score so far, the sum of exp(score - largest),
    and that sum weighted by the values.

    >>> attend([0, 0, 0], [1, 2, 6], block=2)
    3.0
    """
''',
    body="""    largest, total, weighted = -math.inf, 0.0, 0.0
    for start in range(0, len(scores), block):
        s, v = scores[start : start + block], values[start : start + block]
        top = max(largest, *s)
        shrink = math.exp(largest - top)
        terms = [math.exp(score - top) for score in s]
        total = total * shrink + sum(terms)
        weighted = weighted * shrink + sum(t * x for t, x in zip(terms, v))
        largest = top
    return weighted / total
""",
    gap="""    largest, total, weighted = -math.inf, 0.0, 0.0
    for start in range(0, len(scores), block):
        s, v = scores[start : start + block], values[start : start + block]
        raise NotImplementedError  # finish: largest, total, weighted after this block
    return weighted / total""",
    count=_count_softmax,
    changes=(
        Change(
            key="not-rescaled",
            pairs=(("shrink = math.exp(largest - top)", "shrink = 1.0"),),
            story="You added a block to sums that still stood on the old maximum. Both must move to the new one first.",
        ),
        Change(
            key="only-the-sum",
            pairs=(("weighted * shrink", "weighted"),),
            story="You moved the sum to the new maximum and left the weighted sum on the old one.",
        ),
        Change(
            key="only-the-weighted",
            pairs=(("total * shrink", "total"),),
            story="You moved the weighted sum to the new maximum and left the sum on the old one.",
        ),
        Change(
            key="mean-of-blocks",
            pairs=(
                ("total * shrink + sum(terms)", "total + 1"),
                (
                    "weighted * shrink + sum(t * x for t, x in zip(terms, v))",
                    "weighted + sum(t * x for t, x in zip(terms, v)) / sum(terms)",
                ),
            ),
            story="You took each block's own mean, and then the mean of those. Blocks do not weigh the same.",
        ),
        Change(
            key="last-block",
            pairs=(
                ("total * shrink + ", ""),
                ("weighted * shrink + ", ""),
            ),
            story="You kept the last block alone: each one replaced the sums of those before it.",
        ),
    ),
    hint="When the maximum grows by d, everything that was summed before is too large by the same factor.",
    source="Milakov and Gimelshein, 2018, arXiv:1805.02867 (running softmax)",
)

# --- the tiles of a causal attention --------------------------------------------------------------


def _draw_tiles(rng: random.Random) -> Draw:
    """A last tile that is not full, and tokens before the first query."""
    tile_q, tile_k = rng.choice(((5, 3), (6, 4), (7, 4)))
    queries = tile_q * rng.randrange(3, 5) + rng.randrange(1, tile_q - 1)
    return drawn(queries=queries, keys=queries + rng.randrange(11, 30), tile_q=tile_q, tile_k=tile_k)


def _count_tiles(p: Draw) -> int:
    """Pair by pair: which tile does each visible pair lie in?"""
    return len(
        {
            (query // p.tile_q, key // p.tile_k)
            for query in range(p.queries)
            for key in range(p.keys)
            if key <= p.keys - p.queries + query
        }
    )


TILES = CodeTask(
    task="code-causal-tiles",
    name="tiles",
    title="Count the tiles of a causal attention",
    loop="inner",
    section="Fusion and FlashAttention",
    target_s=300,
    takes=("queries", "keys", "tile_q", "tile_k"),
    draw=_draw_tiles,
    limit=lambda rng: drawn(queries=1, keys=rng.randrange(40, 90), tile_q=5, tile_k=4),
    limit_case="one query: a decode step, which sees every key",
    head='''def tiles(queries, keys, tile_q, tile_k):
    """Tiles of a causal attention in which there is anything to compute.

    There are `keys` tokens, and the last `queries` of them are queries: query i is
    token keys - queries + i and sees all tokens up to itself. Tiles of tile_q x
    tile_k are cut from the top left; a tile is skipped when none of its queries
    sees any of its keys.

    >>> tiles(queries=4, keys=4, tile_q=2, tile_k=2)
    3
    """
''',
    body="""    count = 0
    for top in range(0, queries, tile_q):
        bottom = min(top + tile_q, queries) - 1
        seen = keys - queries + bottom + 1
        count += -(-seen // tile_k)
    return count
""",
    gap="    raise NotImplementedError",
    count=_count_tiles,
    changes=(
        Change(
            key="all",
            pairs=(("seen = keys - queries + bottom + 1", "seen = keys"),),
            story="You counted every tile. Those that lie wholly after their queries are skipped.",
        ),
        Change(
            key="top-left",
            pairs=(("keys - queries + bottom + 1", "bottom + 1"),),
            story="You let query 0 be token 0. There are tokens before the first query, and it sees them all.",
        ),
        Change(
            key="first-row",
            pairs=(("min(top + tile_q, queries) - 1", "top"),),
            story="You asked what the first query of a tile sees. Its last query sees more.",
        ),
        Change(
            key="full-only",
            pairs=(("-(-seen // tile_k)", "seen // tile_k"),),
            story="You left out the tiles that are visible in part. They are computed, with a mask.",
        ),
        Change(
            key="every-row",
            pairs=(("-(-seen // tile_k)", "(bottom + 1 - top) * -(-seen // tile_k)"),),
            story="You counted a tile once for each of its queries.",
        ),
    ),
    hint="Take one row of tiles: which of its queries sees most, and how many keys is that?",
    source="Dao, FlashAttention-2, 2023, arXiv:2307.08691, section 3.1 (blocks above the diagonal are skipped)",
)

TASKS = (SECTORS, SOFTMAX, TILES)
