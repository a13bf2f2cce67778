"""Code of the training loop: a ring's step, the order of a pipeline's stage, what a rank keeps, a loop with a bug."""

import random
from fractions import Fraction

from threeloops.drills.engine.code_task import Change, CodeTask
from threeloops.drills.engine.drill import Draw, drawn
from threeloops.drills.engine.functions import Value
from threeloops.drills.engine.searches import wanted
from threeloops.simulate.training_loop import pipeline_orders

# --- a step of a ring -----------------------------------------------------------------------------


def _draw_ring(rng: random.Random) -> Draw:
    ranks = rng.choice((4, 5))
    held = [[rng.randrange(1, 10) * 10**rank for _ in range(ranks)] for rank in range(ranks)]
    return drawn(held=held, steps=rng.randrange(2, ranks))


def _count_ring(p: Draw) -> Value:
    """Piece c reaches rank r in step (r - 1 - c) % n, as the sum of all the ranks that it came by."""
    ranks = len(p.held)
    return tuple(
        tuple(
            p.held[rank][piece] + sum(p.held[rank - back][piece] for back in range(1, came + 2) if came < p.steps)
            for piece in range(ranks)
            for came in [(rank - 1 - piece) % ranks]
        )
        for rank in range(ranks)
    )


RING = CodeTask(
    task="code-ring-step",
    name="reduce_scatter",
    title="Finish a ring reduce-scatter",
    loop="training",
    section="Data parallelism and all-reduce",
    target_s=360,
    takes=("held", "steps"),
    draw=_draw_ring,
    limit=lambda rng: drawn(**vars(_draw_ring(rng)) | {"steps": 0}),
    limit_case="no step at all: every rank holds what it came with",
    head='''def reduce_scatter(held, steps):
    """What every rank holds after some steps of a ring reduce-scatter.

    held[r][c] is piece c of rank r; there are as many pieces as ranks. In step s
    (0, 1, ...) rank r sends its piece (r - s) % n to rank r + 1, the last rank to
    rank 0, which adds it to its own. All ranks send at the same moment.

    >>> reduce_scatter([[1, 2], [10, 20]], steps=1)
    [[1, 22], [11, 20]]
    """
''',
    body="""    n = len(held)
    held = [list(pieces) for pieces in held]
    for s in range(steps):
        sent = [held[r][(r - s) % n] for r in range(n)]
        for r in range(n):
            held[(r + 1) % n][(r - s) % n] += sent[r]
    return held
""",
    gap="""    n = len(held)
    held = [list(pieces) for pieces in held]
    for s in range(steps):
        raise NotImplementedError  # finish this: one step
    return held""",
    count=_count_ring,
    changes=(
        Change(
            key="replaced",
            pairs=(("+= sent[r]", "= sent[r]"),),
            story="You overwrote the receiver's piece. It is added, or its own share of the sum is lost.",
        ),
        Change(
            key="backwards",
            pairs=(("held[(r + 1) % n]", "held[(r - 1) % n]"),),
            story="You sent to the rank before. Then what a rank passes on next is not what it has just received.",
        ),
        Change(
            key="same-piece",
            pairs=(("(r - s) % n", "r"),),
            story="You sent the same piece in every step. A rank passes on the sum that has just reached it.",
        ),
        Change(
            key="next-piece",
            pairs=(("(r - s) % n", "(r + s) % n"),),
            story="You went through the pieces forwards. What reached a rank in one step is what it sends in the next.",
        ),
        Change(
            key="own-place",
            pairs=(("held[(r + 1) % n][(r - s) % n] +=", "held[(r + 1) % n][(r + 1 - s) % n] +="),),
            story="You added a piece to the receiver's next piece. Only the same pieces of the vector belong together.",
        ),
    ),
    hint="First note what every rank sends, then add; the number of the piece stays the same on the way.",
    source="Patarasuk and Yuan, JPDC 69(2), 2009, doi:10.1016/j.jpdc.2008.09.002 (ring all-reduce)",
)

# --- the order of a stage under 1F1B --------------------------------------------------------------


def _draw_order(rng: random.Random) -> Draw:
    """A stage whose warm-up no mistake hits by accident."""
    stages = rng.choice((7, 8, 9))
    near = (stages // 2 - 1, (stages - 1) // 2, stages // 2)
    return drawn(
        stage=rng.choice([one for one in range(2, stages - 2) if one not in near]),
        stages=stages,
        micro_batches=stages + rng.randrange(1, 4),
    )


def _count_order(p: Draw) -> Value:
    """As the simulator's schedule has it."""
    slots = pipeline_orders.orders(schedule="1f1b", pp=p.stages, micro_batches=p.micro_batches)[p.stage]
    return tuple(f"{one.kind}{one.micro_batch}" for slot in slots for one in slot)


ORDER = CodeTask(
    task="code-1f1b-order",
    name="order",
    title="Write a stage's order under 1F1B",
    loop="training",
    section="Pipeline parallelism",
    target_s=360,
    takes=("stage", "stages", "micro_batches"),
    draw=_draw_order,
    limit=lambda rng: drawn(stage=1, stages=rng.choice((6, 7)), micro_batches=3),
    limit_case="fewer micro-batches than stages: all forward passes come first",
    head='''def order(stage, stages, micro_batches):
    """The passes of one stage of a 1F1B pipeline, in order.

    "F0" is the forward pass of micro-batch 0, "B0" its backward pass; stages
    count from 0. A stage runs as many forwards as it can before its first
    backward can begin, if all passes take equally long; then a backward and a
    forward by turns; then the backwards that are left.

    >>> order(stage=0, stages=2, micro_batches=3)
    ['F0', 'F1', 'B0', 'F2', 'B1', 'B2']
    """
''',
    body="""    ahead = min(stages - stage, micro_batches)
    passes = [f"F{n}" for n in range(ahead)]
    for n in range(micro_batches):
        passes.append(f"B{n}")
        if n + ahead < micro_batches:
            passes.append(f"F{n + ahead}")
    return passes
""",
    gap="    raise NotImplementedError",
    count=_count_order,
    changes=(
        Change(
            key="gpipe",
            pairs=(("min(stages - stage, micro_batches)", "micro_batches"),),
            story="You ran all forwards first: that is GPipe, which holds the activations of every micro-batch.",
        ),
        Change(
            key="same-everywhere",
            pairs=(("stages - stage,", "stages,"),),
            story="You gave every stage the first one's warm-up. A later stage gets its first backward sooner.",
        ),
        Change(
            key="from-the-end",
            pairs=(("stages - stage,", "stage + 1,"),),
            story="You counted the warm-up from the wrong end: the last stage runs its first backward at once.",
        ),
        Change(
            key="one-short",
            pairs=(("stages - stage,", "stages - stage - 1,"),),
            story="One forward too few before the first backward: you counted the stages after this one, without it.",
        ),
        Change(
            key="forward-first",
            pairs=(
                (
                    """        passes.append(f"B{n}")
        if n + ahead < micro_batches:
            passes.append(f"F{n + ahead}")""",
                    """        if n + ahead < micro_batches:
            passes.append(f"F{n + ahead}")
        passes.append(f"B{n}")""",
                ),
            ),
            story="By turns, you let the forward come first: then one micro-batch more is held than need be.",
        ),
    ),
    hint="The last stage runs F0 and then B0. How many forwards fit before B0 on the stage before it?",
    source="Narayanan et al., 2021, arXiv:2104.04473, section 2.2 (1F1B)",
)

# --- what a rank keeps of tensors laid end to end -------------------------------------------------


def _draw_parts(rng: random.Random) -> Draw:
    """Lengths that do not divide, and a rank in the middle."""
    ranks = rng.choice((3, 5))
    sizes = wanted(lambda: [rng.randrange(9, 40) for _ in range(4)], lambda sizes: sum(sizes) % ranks)
    return drawn(sizes=sizes, ranks=ranks, rank=rng.randrange(1, ranks - 1))


def _count_parts(p: Draw) -> Value:
    """Element by element, with the padding in its place."""
    laid = [(tensor, place) for tensor, size in enumerate(p.sizes) for place in range(size)]
    laid += [(-1, 0)] * (-len(laid) % p.ranks)
    each = len(laid) // p.ranks
    own = laid[p.rank * each : (p.rank + 1) * each]
    places = {tensor: [place for one, place in own if one == tensor] for tensor, _ in own if tensor >= 0}
    return tuple((tensor, kept[0], kept[-1] + 1) for tensor, kept in places.items())


PARTS = CodeTask(
    task="code-flat-shards",
    name="parts",
    title="Say what a rank keeps of flattened tensors",
    loop="training",
    section="ZeRO and FSDP",
    target_s=420,
    takes=("sizes", "ranks", "rank"),
    draw=_draw_parts,
    limit=lambda rng: drawn(sizes=[2, 1], ranks=rng.choice((5, 6)), rank=4),
    limit_case="more ranks than elements: the last ones keep nothing but padding",
    head='''def parts(sizes, ranks, rank):
    """Which parts of which tensors a rank keeps.

    Tensors of sizes[0], sizes[1], ... elements are laid end to end, padded at the
    end to a multiple of `ranks`, and cut into equal pieces, one a rank. Return
    [tensor, first, end] for each tensor of which this rank keeps something,
    counted from the tensor's own beginning, `end` excluded, without padding.

    >>> parts([5, 4], ranks=2, rank=0)
    [[0, 0, 5]]
    """
''',
    body="""    each = -(-sum(sizes) // ranks)
    low, high = rank * each, (rank + 1) * each
    kept, begin = [], 0
    for tensor, size in enumerate(sizes):
        first, end = max(low, begin), min(high, begin + size)
        if first < end:
            kept.append([tensor, first - begin, end - begin])
        begin += size
    return kept
""",
    gap="    raise NotImplementedError",
    count=_count_parts,
    changes=(
        Change(
            key="rounded-down",
            pairs=(("-(-sum(sizes) // ranks)", "sum(sizes) // ranks"),),
            story="You rounded a rank's piece down: the last elements belong to no rank. Padding rounds it up.",
        ),
        Change(
            key="from-the-front",
            pairs=(("first - begin, end - begin", "first, end"),),
            story="You counted from the front of the whole row. Each place is told from its own tensor's beginning.",
        ),
        Change(
            key="last-included",
            pairs=(("end - begin]", "end - begin - 1]"),),
            story="You gave the last element that is kept. `end` is the first that is not.",
        ),
        Change(
            key="each-tensor-cut",
            pairs=(
                (
                    "max(low, begin), min(high, begin + size)",
                    "begin + rank * -(-size // ranks), begin + min((rank + 1) * -(-size // ranks), size)",
                ),
            ),
            story="You cut every tensor among the ranks. Here they are laid end to end first, and cut as one.",
        ),
    ),
    hint="A rank keeps one stretch of the row, a tensor covers another; what is kept of it is where the two overlap.",
    source="Zhao et al., PyTorch FSDP, 2023, arXiv:2304.11277, section 3.2.1 (flattened parameters)",
)

# --- find the bug in a training loop --------------------------------------------------------------


def _draw_loop(rng: random.Random) -> Draw:
    micro, every = 2, rng.choice((2, 3))
    samples = [[rng.randrange(1, 5), rng.randrange(1, 9)] for _ in range(2 * micro * every)]
    return drawn(w=round(rng.uniform(0.1, 0.9), 1), samples=samples, rate=0.01, micro=micro, every=every)


def _count_loop(p: Draw) -> float:
    """Batches as large as all micro-batches of a step together, in whole fractions."""
    w, batch = Fraction(str(p.w)), p.micro * p.every
    for start in range(0, len(p.samples), batch):
        w -= Fraction(str(p.rate)) * sum(2 * (w * x - y) * x for x, y in p.samples[start : start + batch]) / batch
    return float(w)


LOOP = CodeTask(
    task="code-training-loop",
    name="train",
    title="Find the bug in a training loop",
    loop="training",
    section="The optimisation stack",
    target_s=300,
    takes=("w", "samples", "rate", "micro", "every"),
    draw=_draw_loop,
    limit=lambda rng: drawn(**vars(_draw_loop(rng)) | {"every": 1}),
    limit_case="a step after every micro-batch: nothing is accumulated",
    head='''def train(w, samples, rate, micro, every):
    """Fit y = w * x by gradient descent; return w. This code has a bug: mend it.

    Samples [x, y] are read `micro` at a time. The mean gradients of `every`
    micro-batches are averaged before a step, which makes it the step of one
    batch of them all. There are whole steps only.

    >>> train(0.0, [[1, 1], [1, 2], [1, 3], [1, 4]], rate=0.5, micro=1, every=2)
    3.5
    """
''',
    body="""    gradient = 0.0
    for number, start in enumerate(range(0, len(samples), micro)):
        batch = samples[start : start + micro]
        slope = sum(2 * (w * x - y) * x for x, y in batch) / micro
        gradient += slope / every
        if (number + 1) % every == 0:
            w -= rate * gradient
            gradient = 0.0
    return w
""",
    gap="",
    count=_count_loop,
    changes=(
        Change(
            key="never-emptied",
            pairs=(
                ("            w -= rate * gradient\n            gradient = 0.0", "            w -= rate * gradient"),
            ),
            story="The gradients of the first step are still in the second: no line sets them to zero.",
        ),
        Change(
            key="last-micro-batch",
            pairs=(("gradient += slope", "gradient = slope"),),
            story="Each micro-batch replaces the gradients of the one before; a step uses the last one's alone.",
        ),
        Change(
            key="summed",
            pairs=(("slope / every", "slope"),),
            story="The micro-batches' gradients are added and never averaged: the step is as many times too long.",
        ),
        Change(
            key="step-too-early",
            pairs=(("(number + 1) % every", "number % every"),),
            story="The step comes after the first micro-batch of each group, not after the last.",
        ),
        Change(
            key="samples-summed",
            pairs=((" / micro\n", "\n"),),
            story="Within a micro-batch the gradients of the samples are added; the loss is their mean.",
        ),
    ),
    hint="Go through two steps by hand: what is in `gradient` when each begins, and what has been added when it ends?",
    source="the mean of means of equally many is the mean of all; checked against one large batch",
)

TASKS = (RING, ORDER, PARTS, LOOP)
