"""Code of the product loop and of the car: a block table, a batch that is refilled, a draft that is checked, a
quantiser, and the newest frame.
"""

import heapq
import itertools
import random
from fractions import Fraction

from threeloops.drills.engine.code_task import Change, CodeTask
from threeloops.drills.engine.drill import Draw, changed, drawn
from threeloops.drills.engine.functions import Value
from threeloops.drills.engine.searches import wanted
from threeloops.product_loop.quantisation import symmetric_grid

# --- a quantiser ----------------------------------------------------------------------------------


def _draw_weights(rng: random.Random) -> Draw:
    """Groups of different sizes, the largest magnitude of each below zero."""
    group, bits = rng.choice((3, 4)), rng.choice((3, 4))
    weights: list[float] = []
    for size in (1, 3):
        own = [round(rng.uniform(-0.9, 0.9) * size, 2) for _ in range(group - 1)]
        weights += [*own, -round(rng.uniform(0.92, 1.0) * size, 2)]
    return drawn(weights=weights, bits=bits, group=group)


def _with_zeros(rng: random.Random) -> Draw:
    p = _draw_weights(rng)
    return drawn(weights=[0.0] * p.group + p.weights[p.group :], bits=p.bits, group=p.group)


def _count_weights(p: Draw) -> Value:
    """Group by group, on the book's grid."""
    back: list[float] = []
    for own in (p.weights[start : start + p.group] for start in range(0, len(p.weights), p.group)):
        largest = max(map(abs, own))
        grid = symmetric_grid(largest=largest or 1.0, bits=p.bits)
        back += [grid.value(grid.code(weight)) for weight in own]
    return tuple(back)


QUANTISER = CodeTask(
    task="code-quantiser",
    name="quantise",
    title="Write a quantiser with groups",
    loop="product",
    section="Compression",
    target_s=300,
    takes=("weights", "bits", "group"),
    draw=_draw_weights,
    limit=_with_zeros,
    limit_case="a group of zeros, which has no scale to divide by",
    head='''def quantise(weights, bits, group):
    """Weights after a symmetric quantisation: to whole numbers, and back.

    Each `group` weights in a row share a scale, under which the largest
    magnitude among them becomes 2 ** (bits - 1) - 1. Python's round() rounds.
    A group of zeros stays zeros.

    >>> quantise([3.5, -7.0, 1.0, 0.0], bits=4, group=2)
    [4.0, -7.0, 1.0, 0.0]
    """
''',
    body="""    last = 2 ** (bits - 1) - 1
    back = []
    for start in range(0, len(weights), group):
        own = weights[start : start + group]
        scale = max(abs(weight) for weight in own) / last or 1.0
        back += [round(weight / scale) * scale for weight in own]
    return back
""",
    gap="    raise NotImplementedError",
    count=_count_weights,
    changes=(
        Change(
            key="one-scale",
            pairs=(("abs(weight) for weight in own)", "abs(weight) for weight in weights)"),),
            story="You gave all weights one scale. Each group has its own, or the small ones lose their digits.",
        ),
        Change(
            key="one-code-more",
            pairs=(("2 ** (bits - 1) - 1", "2 ** (bits - 1)"),),
            story="You let the largest magnitude become 2 to the bits − 1. Above zero there is one code less.",
        ),
        Change(
            key="largest-value",
            pairs=(("max(abs(weight) for weight in own)", "max(own)"),),
            story="You took the largest value for the largest magnitude. A negative weight may reach further.",
        ),
        Change(
            key="cut-off",
            pairs=(("round(weight / scale)", "int(weight / scale)"),),
            story="You cut the fraction off. Rounding halves the error.",
        ),
        Change(
            key="codes",
            pairs=((" * scale for", " for"),),
            story="You returned the codes. The question is what they stand for: bring them back.",
        ),
    ),
    hint="One scale a group: its largest magnitude over the largest code. Then divide, round and multiply again.",
    source="Jacob et al., 2017, arXiv:1712.05877, section 2.1; scales per group as in Frantar et al., 2022, "
    "arXiv:2210.17323",
)

# --- a paged block table --------------------------------------------------------------------------


def _draw_slots(rng: random.Random) -> Draw:
    """Room for one to three tokens in the last block, and then more than another block full."""
    block = rng.choice((5, 6, 7))
    numbers = rng.sample(range(3, 40), 6)
    room = rng.randrange(1, 4)
    return drawn(
        table=numbers[:2],
        length=2 * block - room,
        more=room + block + rng.randrange(1, 4),
        free=numbers[2:],
        block=block,
    )


def _full_table(rng: random.Random) -> Draw:
    p = _draw_slots(rng)
    return changed(p, length=2 * p.block, more=3)


def _count_slots(p: Draw) -> Value:
    """How many blocks that makes in all, first; then each token's place in the longer table."""
    needed = -(-(p.length + p.more) // p.block)
    table = [*p.table, *p.free[: needed - len(p.table)]]
    physical = [number * p.block + place for number in table for place in range(p.block)]
    return tuple(physical[p.length : p.length + p.more])


SLOTS = CodeTask(
    task="code-block-table",
    name="slots",
    title="Walk a paged block table",
    loop="product",
    section="Paging",
    target_s=300,
    takes=("table", "length", "more", "free", "block"),
    draw=_draw_slots,
    limit=_full_table,
    limit_case="a last block that is exactly full",
    head='''def slots(table, length, more, free, block):
    """Where in the KV cache the next `more` tokens of a request are written.

    The request has `length` tokens; table[i] is the number of the memory block
    that holds its tokens from i * block on. When its last block is full, it
    takes the first block of `free`. The slots of block b are b * block and on.

    >>> slots(table=[7], length=3, more=2, free=[2, 5], block=4)
    [31, 8]
    """
''',
    body="""    table, free = list(table), list(free)
    written = []
    for position in range(length, length + more):
        if position // block == len(table):
            table.append(free.pop(0))
        written.append(table[position // block] * block + position % block)
    return written
""",
    gap="    raise NotImplementedError",
    count=_count_slots,
    changes=(
        Change(
            key="new-block-first",
            pairs=(("range(length, length + more)", "range(len(table) * block, len(table) * block + more)"),),
            story="You began with a new block. The last one of the table still had room.",
        ),
        Change(
            key="no-table",
            pairs=(("table[position // block] * block + position % block", "position"),),
            story="You gave places in the request. The table says which memory block each of its blocks is.",
        ),
        Change(
            key="free-from-the-end",
            pairs=(("free.pop(0)", "free.pop()"),),
            story="You took the last free block. The first is taken first.",
        ),
        Change(
            key="one-too-far",
            pairs=(("range(length, length + more)", "range(length + 1, length + more + 1)"),),
            story="You began one place too late. Places count from 0, so the next token has place `length`.",
        ),
        Change(
            key="block-not-times",
            pairs=(("] * block +", "] +"),),
            story="You added the block's number as if it were a slot. A block has several.",
        ),
    ),
    hint="For every new token: which block of the request is it in, which block of memory is that, and where inside?",
    source="Kwon et al., 2023, arXiv:2309.06180, section 4.2 (block tables)",
)

# --- a batch that is refilled ---------------------------------------------------------------------


def _draw_lengths(rng: random.Random) -> Draw:
    return drawn(lengths=[rng.randrange(2, 10) for _ in range(rng.choice((6, 7)))], slots=rng.choice((2, 3)))


def _count_lengths(p: Draw) -> Value:
    """Each request begins when the place that is free soonest is."""
    free, done = [0] * p.slots, []
    for length in p.lengths:
        done.append(heapq.heappop(free) + length)
        heapq.heappush(free, done[-1])
    return tuple(done)


BATCH = CodeTask(
    task="code-continuous-batch",
    name="finished",
    title="Refill a batch while it runs",
    loop="product",
    section="Batching",
    target_s=420,
    takes=("lengths", "slots"),
    draw=_draw_lengths,
    limit=lambda rng: drawn(lengths=[rng.randrange(2, 10) for _ in range(3)], slots=rng.choice((4, 5))),
    limit_case="more places than requests: none waits",
    head='''def finished(lengths, slots):
    """The decode step in which each request is done, under continuous batching.

    All requests wait from the beginning, in order; `slots` of them run at once.
    A step makes one token for each that runs. Request i needs lengths[i] tokens;
    after its last one, the next that waits takes its place in the next step.
    Steps count from 1.

    >>> finished([3, 1, 2], slots=2)
    [3, 1, 3]
    """
''',
    body="""    left, done, step = list(lengths), [0] * len(lengths), 0
    waiting, running = list(range(len(lengths))), []
    while waiting or running:
        step += 1
        while waiting and len(running) < slots:
            running.append(waiting.pop(0))
        for one in list(running):
            left[one] -= 1
            if left[one] == 0:
                running.remove(one)
                done[one] = step
    return done
""",
    gap="    raise NotImplementedError",
    count=_count_lengths,
    changes=(
        Change(
            key="static",
            pairs=(
                (
                    "        while waiting and len(running) < slots:\n            running.append(waiting.pop(0))",
                    "        if not running:\n            running, waiting = waiting[:slots], waiting[slots:]",
                ),
            ),
            story="You refilled the batch when all of it was done: static batching, which waits for the longest.",
        ),
        Change(
            key="shortest-first",
            pairs=(("list(range(len(lengths)))", "sorted(range(len(lengths)), key=lambda one: lengths[one])"),),
            story="You let the short ones go first. They run in the order in which they came.",
        ),
        Change(
            key="a-step-late",
            pairs=(("left[one] == 0", "left[one] < 0"),),
            story="A request that was done kept its place for one step more.",
        ),
        Change(
            key="one-at-a-time",
            pairs=(("len(running) < slots", "len(running) < 1"),),
            story="You ran one request at a time.",
        ),
        Change(
            key="all-at-once",
            pairs=(("waiting and len(running) < slots", "waiting"),),
            story="You let all requests run at once. Only so many places are there.",
        ),
    ),
    hint="Step by step: fill the free places, make a token for each that runs, then take out those that are done.",
    source="Yu et al., Orca, OSDI 2022, section 3.2 (iteration-level scheduling)",
)

# --- a draft that is checked ----------------------------------------------------------------------


def _shares(rng: random.Random, parts: int = 20) -> list[float]:
    """Three probabilities in twentieths, none of them 0."""
    low, high = sorted(rng.sample(range(1, parts), 2))
    return [low / parts, (high - low) / parts, (parts - high) / parts]


def _one_round(rng: random.Random) -> Draw:
    drafted = 3
    return drawn(
        tokens=[rng.randrange(3) for _ in range(drafted)],
        draft=[_shares(rng) for _ in range(drafted)],
        target=[_shares(rng) for _ in range(drafted + 1)],
        chances=[rng.randrange(5, 96) / 100 for _ in range(drafted)],
    )


def _clear(p: Draw) -> bool:
    """No chance so near to its ratio that rounding would decide, and the two models nowhere of one mind."""
    near = any(abs(chance - ratio) <= 0.02 for chance, ratio in zip(p.chances, _ratios(p), strict=True))
    return not near and all(given != wanted for given, wanted in zip(p.draft, p.target[:-1], strict=True))


def _ratios(p: Draw) -> list[float]:
    return [p.target[place][token] / p.draft[place][token] for place, token in enumerate(p.tokens)]


def _kept(p: Draw) -> tuple[int, int, int]:
    """How many tokens are kept: rightly, with the ratio turned round, and by comparing with the likeliest token."""
    right = [chance < ratio for chance, ratio in zip(p.chances, _ratios(p), strict=True)]
    turned = [chance < 1 / ratio for chance, ratio in zip(p.chances, _ratios(p), strict=True)]
    likeliest = [token == p.target[place].index(max(p.target[place])) for place, token in enumerate(p.tokens)]
    right_run, turned_run, likeliest_run = ([*found, False].index(False) for found in (right, turned, likeliest))
    return right_run, turned_run, likeliest_run


def _draw_verify(rng: random.Random) -> Draw:
    """One of the drafted tokens is refused, and the mistakes keep other numbers of them."""

    def fits(p: Draw) -> bool:
        kept = _kept(p)
        return _clear(p) and kept[0] < len(p.tokens) and len(set(kept)) == len(kept)

    return wanted(lambda: _one_round(rng), fits)


def _all_kept(rng: random.Random) -> Draw:
    return wanted(lambda: _one_round(rng), lambda p: _clear(p) and _kept(p)[0] == len(p.tokens))


def _count_verify(p: Draw) -> Value:
    """In whole fractions; what the draft covers is taken from 1, not what it does not cover summed."""
    for place, token in enumerate(p.tokens):
        wanted, given = ([Fraction(str(one)) for one in model[place]] for model in (p.target, p.draft))
        if Fraction(str(p.chances[place])) * given[token] >= wanted[token]:
            covered = [min(pair) for pair in zip(wanted, given, strict=True)]
            rest = [(one - both) / (1 - sum(covered)) for one, both in zip(wanted, covered, strict=True)]
            return (place, tuple(map(float, rest)))
    return (len(p.tokens), tuple(p.target[-1]))


VERIFY = CodeTask(
    task="code-verify-draft",
    name="verify",
    title="Check a drafted text",
    loop="product",
    section="Speculative decoding",
    target_s=420,
    takes=("tokens", "draft", "target", "chances"),
    draw=_draw_verify,
    limit=_all_kept,
    limit_case="every drafted token is kept: the target's next distribution is there already",
    head='''def verify(tokens, draft, target, chances):
    """What one round of speculative decoding keeps, and what comes next.

    draft[i] and target[i] are the two models' probabilities at place i. Token i
    is kept while chances[i] < its target probability / its draft probability; the
    first token that is refused ends the round. Return [number of tokens kept, the
    distribution from which the next token is drawn], such that all tokens
    are distributed as the target's own. `target` has one place more.

    >>> verify([0], [[0.75, 0.25]], [[0.25, 0.75], [0.5, 0.5]], chances=[0.5])
    [0, [0.0, 1.0]]
    """
''',
    body="""    for place, token in enumerate(tokens):
        p, q = target[place], draft[place]
        if chances[place] >= p[token] / q[token]:
            rest = [max(a - b, 0.0) for a, b in zip(p, q)]
            return [place, [one / sum(rest) for one in rest]]
    return [len(tokens), target[len(tokens)]]
""",
    gap="    raise NotImplementedError",
    count=_count_verify,
    changes=(
        Change(
            key="target-itself",
            pairs=(("[max(a - b, 0.0) for a, b in zip(p, q)]", "p"),),
            story="You drew from the target's whole distribution. What the draft offered of it has had its chance.",
        ),
        Change(
            key="not-normalised",
            pairs=(("one / sum(rest) for", "one for"),),
            story="What the draft does not cover sums to less than 1. Bring it to 1.",
        ),
        Change(
            key="both-ways",
            pairs=(("max(a - b, 0.0)", "abs(a - b)"),),
            story="You took the difference both ways. Where the draft gives too much, nothing is left to draw.",
        ),
        Change(
            key="turned-round",
            pairs=(("p[token] / q[token]", "q[token] / p[token]"),),
            story="You turned the ratio round: a token that the target likes better than the draft is always kept.",
        ),
        Change(
            key="greedy",
            pairs=(("chances[place] >= p[token] / q[token]", "token != p.index(max(p))"),),
            story="You kept what is the target's likeliest token. That is greedy decoding; here tokens are sampled.",
        ),
    ),
    hint="At the refused place, subtract the draft's probabilities from the target's. What is left over, and where?",
    source="Leviathan et al., 2023, arXiv:2211.17192, algorithm 1",
)

# --- the newest frame -----------------------------------------------------------------------------


def _draw_frames(rng: random.Random) -> Draw:
    """Frames that take up to three periods."""
    period = rng.choice((30, 33, 40))
    return drawn(period=period, takes=[round(period * rng.uniform(0.5, 2.9)) for _ in range(8)])


def _quick_frames(rng: random.Random) -> Draw:
    period = rng.choice((30, 33, 40))
    return drawn(period=period, takes=[rng.randrange(5, period) for _ in range(6)])


def _count_frames(p: Draw) -> Value:
    """Millisecond by millisecond, with one place for a frame that waits."""
    waiting: int | None = None
    busy_until, found = 0, []
    for now in itertools.count():
        if now % p.period == 0 and now // p.period < len(p.takes):
            waiting = now // p.period
        if now >= busy_until and waiting is not None:
            busy_until = now + p.takes[waiting]
            found.append(busy_until - waiting * p.period)
            waiting = None
        if now > len(p.takes) * p.period and now >= busy_until:
            return tuple(found)
    raise AssertionError("time has no end")


FRAMES = CodeTask(
    task="code-newest-frame",
    name="ages",
    title="Always take the newest frame",
    loop="driving",
    section="Tails and schedules",
    target_s=360,
    takes=("period", "takes"),
    draw=_draw_frames,
    limit=_quick_frames,
    limit_case="every frame fits into its period: none is left out",
    head='''def ages(period, takes):
    """How old each result's picture is when the result is ready.

    Frame k is taken at k * period and needs takes[k] on one processor. When the
    processor is free it takes the newest frame there is; older ones are left
    out. If it has had the newest one already, it waits for the next. All
    times are whole milliseconds, and a frame can be taken up at once.

    >>> ages(period=10, takes=[12, 3, 3])
    [12, 5, 3]
    """
''',
    body="""    found, free, following = [], 0, 0
    while following < len(takes):
        frame = max(following, min(free // period, len(takes) - 1))
        start = max(free, frame * period)
        free = start + takes[frame]
        found.append(free - frame * period)
        following = frame + 1
    return found
""",
    gap="    raise NotImplementedError",
    count=_count_frames,
    changes=(
        Change(
            key="in-turn",
            pairs=(("max(following, min(free // period, len(takes) - 1))", "following"),),
            story="You took every frame in its turn: a queue, in which each is older than the one before.",
        ),
        Change(
            key="from-the-start",
            pairs=(("free - frame * period", "free - start"),),
            story="You counted from when the work began. The world in the picture is as old as the picture.",
        ),
        Change(
            key="dropped-while-busy",
            pairs=(
                (
                    "min(free // period, len(takes) - 1))",
                    "-(-free // period))\n        if frame >= len(takes):\n            break",
                ),
            ),
            story="You dropped what came while the processor was busy. The newest of those frames waits, and is taken.",
        ),
        Change(
            key="on-the-clock",
            pairs=(("found.append(free - frame * period)", "found.append(free)"),),
            story="You gave the moments at which results are ready. An age is counted from the picture.",
        ),
    ),
    hint="When the processor becomes free: which frame was taken last, and has it been worked on?",
    source="played millisecond by millisecond, with one place for a frame that waits (what a queue of depth 1 does)",
)

TASKS = (QUANTISER, SLOTS, BATCH, VERIFY, FRAMES)
