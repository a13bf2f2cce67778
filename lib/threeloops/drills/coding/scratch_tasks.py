"""Code from scratch, as interviews of serving engineers ask it: attention with a cache, a sampler, BPE, an LRU cache,
the tokens that a grammar allows, a batcher with threads.
"""

import itertools
import json
import math
import random
from collections import OrderedDict
from collections.abc import Iterable

from threeloops.drills.engine.code_task import Change, CodeTask
from threeloops.drills.engine.drill import Draw, drawn
from threeloops.drills.engine.functions import Value, same
from threeloops.drills.engine.searches import wanted

DECODE, STORED, ENGINES = "KV cache", "Paging", "Engines and compilers"
GAP = "    raise NotImplementedError"


def apart(task: CodeTask, p: Draw) -> bool:
    """Whether every mistake of a task gives another answer on a draw than the right one and than the others."""
    values = [task.target(p), *(slip.wrong(p) for slip in task.slips)]
    return not any(same(one, other) for one, other in itertools.combinations(values, 2))


# --- attention with a cache -----------------------------------------------------------------------


def _step(rng: random.Random, held: int) -> Draw:
    own, group, size = 2, rng.choice((2, 3)), rng.choice((3, 5))

    def row() -> list[float]:
        return [rng.randrange(-20, 21) / 10 for _ in range(size)]

    return drawn(
        q=[row() for _ in range(own * group)],
        k=[row() for _ in range(own)],
        v=[row() for _ in range(own)],
        keys=[[row() for _ in range(held)] for _ in range(own)],
        values=[[row() for _ in range(held)] for _ in range(own)],
    )


def _draw_step(rng: random.Random) -> Draw:
    return wanted(lambda: _step(rng, rng.randrange(3, 6)), lambda p: apart(CACHED, p))


def _dot(one: Iterable[float], other: Iterable[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


def _count_step(p: Draw) -> Value:
    """Each weight by itself: one over the sum of what the others weigh beside it."""
    found = []
    for own, (key, value) in enumerate(zip(p.k, p.v, strict=True)):
        keys, values = [*p.keys[own], key], [*p.values[own], value]
        group = len(p.q) // len(p.k)
        for query in p.q[own * group : (own + 1) * group]:
            marks = [_dot(query, one) / len(query) ** 0.5 for one in keys]
            shares = [1 / math.fsum(math.exp(other - mark) for other in marks) for mark in marks]
            found.append(tuple(_dot(shares, column) for column in zip(*values, strict=True)))
    return tuple(found)


CACHED = CodeTask(
    task="code-cached-attention",
    name="attend",
    title="Write attention with a KV cache",
    loop="product",
    section=DECODE,
    target_s=600,
    takes=("q", "k", "v", "keys", "values"),
    draw=_draw_step,
    limit=lambda rng: _step(rng, 0),
    limit_case="an empty cache: the first token",
    head='''import math


def attend(q, k, v, keys, values):
    """One decode step of attention, for one new token.

    q has the new token's query of each head; k and v its key and value of each
    KV head. keys[g] and values[g] are what KV head g holds of the tokens before.
    Heads share KV heads in groups, neighbours together. Scores are divided by
    the root of a query's length. Return each head's output, a list of lists.

    >>> attend([[0.0], [0.0]], [[1.0]], [[4.0]], keys=[[[1.0]]], values=[[[2.0]]])
    [[3.0], [3.0]]
    """
''',
    body="""    group, out = len(q) // len(k), []
    for head, query in enumerate(q):
        own = head // group
        seen, held = keys[own] + [k[own]], values[own] + [v[own]]
        scores = [sum(a * b for a, b in zip(query, key)) for key in seen]
        scores = [score / math.sqrt(len(query)) for score in scores]
        largest = max(scores)
        weights = [math.exp(score - largest) for score in scores]
        total = sum(weights)
        out.append([sum(w * x for w, x in zip(weights, column)) / total for column in zip(*held)])
    return out
""",
    gap=GAP,
    count=_count_step,
    changes=(
        Change(
            key="not-itself",
            pairs=(
                (
                    "keys[own] + [k[own]], values[own] + [v[own]]",
                    "keys[own] or [k[own]], values[own] or [v[own]]",
                ),
            ),
            story="The new token does not see itself. Its own key and value belong to what is attended to.",
        ),
        Change(
            key="heads-in-turn",
            pairs=(("own = head // group", "own = head % len(k)"),),
            story="You dealt the KV heads out in turn. Neighbouring heads share one.",
        ),
        Change(
            key="one-kv-head",
            pairs=(("own = head // group", "own = 0"),),
            story="Every head read the first KV head. There are several.",
        ),
        Change(
            key="no-root",
            pairs=((" / math.sqrt(len(query))", ""),),
            story="Your scores are not divided by the root of the head's size.",
        ),
        Change(
            key="not-divided",
            pairs=((" / total for", " for"),),
            story="Your weights do not add up to one.",
        ),
    ),
    hint="Which KV head does head h read? Then: what is cached and what is new, a score each, a softmax, a mean.",
    source="Ainslie et al., GQA, 2023, arXiv:2305.13245, section 2.2; Shazeer, 2019, arXiv:1911.02150",
)

# --- a sampler ------------------------------------------------------------------------------------


def _logits(rng: random.Random, top_k: int) -> Draw:
    return drawn(
        logits=[round(rng.uniform(-2.5, 2.5), 2) for _ in range(9)],
        temperature=rng.choice((0.6, 0.7, 1.4, 1.6)),
        top_k=top_k,
        top_p=rng.choice((0.75, 0.8, 0.85, 0.9)),
    )


def _draw_logits(rng: random.Random) -> Draw:
    """No sum so near to top_p that rounding would decide."""

    def fits(p: Draw) -> bool:
        sums = list(itertools.accumulate(share for _, share in _shares(p)))
        return len(set(p.logits)) == 9 and min(abs(one - p.top_p) for one in sums) > 0.01 and apart(SAMPLER, p)

    return wanted(lambda: _logits(rng, rng.randrange(4, 7)), fits)


def _shares(p: Draw) -> list[tuple[int, float]]:
    """The top_k with their shares of one another."""
    ranked = sorted(((logit, token) for token, logit in enumerate(p.logits)), reverse=True)[: p.top_k]
    return [
        (token, 1 / sum(math.exp((other - logit) / p.temperature) for other, _ in ranked)) for logit, token in ranked
    ]


def _count_logits(p: Draw) -> Value:
    """The smallest number of tokens whose shares reach top_p, by trying all numbers."""
    shares = _shares(p)
    enough = next(n for n in range(1, len(shares) + 1) if math.fsum(one for _, one in shares[:n]) >= p.top_p - 1e-12)
    whole = math.fsum(one for _, one in shares[:enough])
    return tuple((token, one / whole) for token, one in shares[:enough])


SAMPLER = CodeTask(
    task="code-sampler",
    name="choices",
    title="Write a sampler: temperature, top-k, top-p",
    loop="product",
    section="What a request goes through",
    target_s=480,
    takes=("logits", "temperature", "top_k", "top_p"),
    draw=_draw_logits,
    limit=lambda rng: _logits(rng, 1),
    limit_case="top_k of 1: greedy",
    head='''import math


def choices(logits, temperature, top_k, top_p):
    """The tokens that may come next, with their probabilities, likeliest first.

    First the temperature; then the top_k likeliest tokens are kept, and their
    probabilities made to add up to 1; then the fewest of those, from the
    likeliest on, that reach top_p together; and these add up to 1 again.
    Return [[token, probability], ...]; a token is a place in logits.

    >>> choices([0.0, 3.0, 0.0], temperature=1.0, top_k=2, top_p=0.5)
    [[1, 1.0]]
    """
''',
    body="""    order = sorted(range(len(logits)), key=lambda token: -logits[token])[:top_k]
    largest = logits[order[0]]
    weights = [math.exp((logits[token] - largest) / temperature) for token in order]
    total, kept, reached = sum(weights), [], 0.0
    for token, weight in zip(order, weights):
        kept.append((token, weight))
        reached += weight / total
        if reached >= top_p:
            break
    total = sum(weight for _, weight in kept)
    return [[token, weight / total] for token, weight in kept]
""",
    gap=GAP,
    count=_count_logits,
    changes=(
        Change(
            key="times-temperature",
            pairs=((") / temperature)", ") * temperature)"),),
            story="You multiplied by the temperature. A high one makes all tokens more alike.",
        ),
        Change(
            key="crossing-left-out",
            pairs=(
                (
                    "        kept.append((token, weight))\n        reached += weight / total\n"
                    "        if reached >= top_p:\n            break\n",
                    "        reached += weight / total\n        if reached >= top_p and kept:\n            break\n"
                    "        kept.append((token, weight))\n",
                ),
            ),
            story="You left out the token with which top_p is reached. Without it the others do not reach it.",
        ),
        Change(
            key="not-divided-again",
            pairs=(("    total = sum(weight for _, weight in kept)\n", ""),),
            story="After the cut your probabilities no longer add up to 1.",
        ),
        Change(
            key="top-p-of-all",
            pairs=(("[:top_k]\n", "\n"), ("if reached >= top_p:", "if reached >= top_p or len(kept) == top_k:")),
            story="You took top_p of all tokens' probabilities. It is of those that top_k has kept.",
        ),
        Change(
            key="no-top-p",
            pairs=(("if reached >= top_p:", "if reached > 1.5:"),),
            story="You kept all of the top_k. Fewer of them may reach top_p.",
        ),
    ),
    hint="Sort once. Each cut keeps a beginning of that order; after each, divide by what is left.",
    source="Holtzman et al., 2019, arXiv:1904.09751, section 3.1 (top-p); Fan et al., 2018, arXiv:1805.04833 (top-k)",
)

# --- byte-pair encoding ---------------------------------------------------------------------------


def _word(rng: random.Random) -> Draw:
    pieces, merges = list("abc"), list[list[str]]()
    for _ in range(8):
        pair = wanted(
            lambda: [rng.choice(pieces), rng.choice(pieces)],
            lambda pair: pair not in merges and len("".join(pair)) <= 4,
        )
        merges.append(pair)
        pieces.append("".join(pair))
    return drawn(word="".join(rng.choice("abc") for _ in range(rng.randrange(9, 14))), merges=merges)


def _draw_word(rng: random.Random) -> Draw:
    return wanted(lambda: _word(rng), lambda p: apart(BPE, p))


def _count_word(p: Draw) -> Value:
    """One merge at a time, by cutting the text between tokens anew."""
    parts = tuple(p.word)
    while True:
        there = [
            (rank, place)
            for rank, pair in enumerate(p.merges)
            for place in range(len(parts) - 1)
            if [*parts[place : place + 2]] == pair
        ]
        if not there:
            return parts
        _, place = min(there)
        parts = (*parts[:place], parts[place] + parts[place + 1], *parts[place + 2 :])


BPE = CodeTask(
    task="code-bpe",
    name="tokens",
    title="Write byte-pair encoding",
    loop="product",
    section="What a request goes through",
    target_s=480,
    takes=("word", "merges"),
    draw=_draw_word,
    limit=lambda rng: drawn(word="c", merges=_word(rng).merges),
    limit_case="a word of one letter",
    head='''def tokens(word, merges):
    """A word as its tokens, by the merges that a tokenizer has learnt, best first.

    Begin with single letters. In each round take the earliest merge of the list
    that two neighbours have, and make one token of all such neighbours, from left
    to right; end when no neighbours have a merge.

    >>> tokens("abab", [["b", "a"], ["a", "b"]])
    ['a', 'ba', 'b']
    """
''',
    body="""    parts = list(word)
    ranks = {tuple(pair): rank for rank, pair in enumerate(merges)}
    while True:
        found = [ranks[pair] for pair in zip(parts, parts[1:]) if pair in ranks]
        if not found:
            break
        left, right = merges[min(found)]
        merged, place = [], 0
        while place < len(parts):
            if parts[place : place + 2] == [left, right]:
                merged.append(left + right)
                place += 2
            else:
                merged.append(parts[place])
                place += 1
        parts = merged
    return parts
""",
    gap=GAP,
    count=_count_word,
    changes=(
        Change(
            key="leftmost",
            pairs=(("min(found)", "found[0]"),),
            story="You merged what stands furthest left. The earliest merge goes first, wherever it stands.",
        ),
        Change(
            key="latest",
            pairs=(("min(found)", "max(found)"),),
            story="You took the latest merge. They are in order, best first.",
        ),
        Change(
            key="longest",
            pairs=(("min(found)", 'max(found, key=lambda rank: (len("".join(merges[rank])), -rank))'),),
            story="You took the merge that gives the longest token. Their order decides.",
        ),
        Change(
            key="one-merge",
            pairs=(("        parts = merged\n", "        parts = merged\n        break\n"),),
            story="You stopped after one merge. What it makes may have a merge, too.",
        ),
    ),
    hint="In each round: which merges can be applied, which of them was learnt first, and where does it stand?",
    source="Sennrich, Haddow, Birch, 2015, arXiv:1508.07909, section 3.2",
)

# --- an LRU cache ---------------------------------------------------------------------------------


def _asked(rng: random.Random, capacity: int) -> Draw:
    return drawn(capacity=capacity, asked=[rng.randrange(1, 8) for _ in range(rng.randrange(16, 24))])


def _draw_asked(rng: random.Random) -> Draw:
    return wanted(lambda: _asked(rng, rng.randrange(3, 5)), lambda p: apart(LRU, p))


def _count_asked(p: Draw) -> Value:
    cache, gone = OrderedDict[int, None](), list[int]()
    for key in p.asked:
        cache[key] = None
        cache.move_to_end(key)
        if len(cache) > p.capacity:
            gone.append(cache.popitem(last=False)[0])
    return tuple(gone)


LRU = CodeTask(
    task="code-lru",
    name="evicted",
    title="Write an LRU cache for prefixes",
    loop="product",
    section=STORED,
    target_s=360,
    takes=("capacity", "asked"),
    draw=_draw_asked,
    limit=lambda rng: _asked(rng, 1),
    limit_case="a cache of one block",
    head='''def evicted(capacity, asked):
    """The blocks that a cache throws out, in order.

    Blocks are asked for one after the other. One that is not held is read in;
    if the cache holds `capacity` blocks already, the one whose last use is longest
    ago is thrown out before that.

    >>> evicted(2, [1, 2, 1, 3])
    [2]
    """
''',
    body="""    held, gone = [], []  # the longest unused first
    for block in asked:
        if block in held:
            held.remove(block)
        elif len(held) == capacity:
            gone.append(held.pop(0))
        held.append(block)
    return gone
""",
    gap=GAP,
    count=_count_asked,
    changes=(
        Change(
            key="first-in-first-out",
            pairs=(("            held.remove(block)\n", "            continue\n"),),
            story="You threw out what came first. A block that is used again becomes the newest.",
        ),
        Change(
            key="newest",
            pairs=(("held.pop(0)", "held.pop()"),),
            story="You threw out the block that was used last. The one that was not used for longest goes.",
        ),
        Change(
            key="one-less",
            pairs=(("len(held) == capacity", "len(held) == max(1, capacity - 1)"),),
            story="Your cache holds one block less than it may.",
        ),
        Change(
            key="one-more",
            pairs=(("len(held) == capacity", "len(held) == capacity + 1"),),
            story="Your cache holds one block more than it may.",
        ),
    ),
    hint="Keep the blocks in the order of their last use; what is used moves to the end. (In Python a dict can: O(1).)",
    source="Zheng et al., SGLang, 2023, arXiv:2312.07104, section 3 (prefixes are evicted by least recent use)",
)

# --- what a grammar allows ------------------------------------------------------------------------

BEGUN = ("[", "[1", "[12", "[1,", "[[", "[[2]", "[[1,2],", "[2,[", "[[1],[2", "[[", "[1,[2]", "[2]", "[[1]]")


def _vocabulary(rng: random.Random, text: str) -> Draw:
    words = {"".join(rng.choice("[],12") for _ in range(rng.randrange(1, 4))) for _ in range(16)}
    return drawn(text=text, vocabulary=sorted(words | {",1", "1]", "]"}))


def _draw_vocabulary(rng: random.Random) -> Draw:
    return wanted(lambda: _vocabulary(rng, rng.choice(BEGUN[:-2])), lambda p: apart(MASK, p))


def _count_vocabulary(p: Draw) -> Value:
    """By asking whether anything completes it, of a reader of JSON."""

    def can_be(text: str) -> bool:
        for more in ("", "1"):
            try:
                if isinstance(json.loads(text + more + "]" * (text.count("[") - text.count("]"))), list):
                    return True
            except ValueError:
                continue
        return False

    return tuple(place for place, word in enumerate(p.vocabulary) if can_be(p.text + word))


MASK = CodeTask(
    task="code-grammar-mask",
    name="allowed",
    title="Write the mask of structured output",
    loop="product",
    section=ENGINES,
    target_s=720,
    takes=("text", "vocabulary"),
    draw=_draw_vocabulary,
    limit=lambda rng: _vocabulary(rng, rng.choice(BEGUN[-2:])),
    limit_case="a list that is closed: nothing may follow",
    head='''def allowed(text, vocabulary):
    """Which tokens may come next, so that the text can become one JSON list.

    A list holds numbers (of the digits 1 and 2) and lists, with commas between:
    [], [12,[1],[]]. No spaces. `text` is the beginning of such a list. A token is
    some characters; it may come if text + token is a beginning, too. Return the
    places of those tokens in the vocabulary.

    >>> allowed("[1", ["]", ",]", "2,", "[", "]]"])
    [0, 2]
    """
''',
    body="""    def can_be(written):
        depth, before = 0, ""
        for character in written:
            if before and depth == 0:
                return False
            if character == "[":
                if before not in ("", "[", ","):
                    return False
                depth += 1
            elif character == "]":
                if before in ("", ","):
                    return False
                depth -= 1
            elif character == ",":
                if before in ("", "[", ","):
                    return False
            elif before in ("", "]"):
                return False
            before = character
        return True

    return [place for place, token in enumerate(vocabulary) if can_be(text + token)]
""",
    gap=GAP,
    count=_count_vocabulary,
    changes=(
        Change(
            key="first-character",
            pairs=(("can_be(text + token)]", "can_be(text + token[0])]"),),
            story="You looked at the first character of a token. All of them are written.",
        ),
        Change(
            key="only-whole",
            pairs=(("        return True\n", "        return depth == 0\n"),),
            story="You allowed only tokens after which the list is complete. It may become so later.",
        ),
        Change(
            key="comma-at-the-end",
            pairs=(('if before in ("", ","):', 'if before == "":'),),
            story="You let a list end after a comma. JSON has none there.",
        ),
        Change(
            key="no-empty-list",
            pairs=(('if before in ("", ","):', 'if before in ("", ",", "["):'),),
            story="You refused empty lists.",
        ),
        Change(
            key="goes-on",
            pairs=(("            if before and depth == 0:\n                return False\n", ""),),
            story="You let something follow when the outermost list was closed.",
        ),
    ),
    hint="Walk through text and token character by character: how deep are you, and what stood before?",
    source="Willard and Louf, 2023, arXiv:2307.09702 (guided generation by a mask over the vocabulary)",
)

# --- a batcher with threads -----------------------------------------------------------------------


def _arrivals(rng: random.Random, number: int, most: int) -> Draw:
    return drawn(requests=rng.sample(range(10, 99), number), most=most, turns=[rng.randrange(2) for _ in range(200)])


def _draw_arrivals(rng: random.Random) -> Draw:
    def draw() -> Draw:
        most = rng.randrange(3, 6)
        return _arrivals(rng, 4 * most + rng.randrange(1, most), most)

    return wanted(draw, lambda p: apart(BATCHER, p))


THREADS = """    waiting, batches, held, at_work = list(requests), [], [], [0, 0]

    def size():
        yield
        return len(waiting)

    def pop():
        yield
        return waiting.pop(0) if waiting else -1

    def acquire():
        while held:
            yield
        held.append(True)

    def release():
        held.clear()
        yield

    def run(batch):
        batches.append(batch)
        at_work[:] = [at_work[0] + 1, max(at_work[1], at_work[0] + 1)]
        for _ in range(60):
            yield
        at_work[0] -= 1

"""
WORKER = """    def worker():
        while True:
            yield from acquire()
            batch, count = [], min(most, (yield from size()))
            for _ in range(count):
                batch.append((yield from pop()))
            yield from release()
            if not batch:
                return
            yield from run(batch)

"""
SEEN = """    threads = [worker(), worker()]
    for turn in (turns + [0, 1] * 500):
        if threads[turn] and next(threads[turn], "done") == "done":
            threads[turn] = None
    served = sorted(request for batch in batches for request in batch)
    left = sum(thread is not None for thread in threads)
    return [served, max(map(len, batches)), at_work[1], left]
"""

BATCHER = CodeTask(
    task="code-thread-safe-batcher",
    name="serve",
    title="Write a thread-safe batcher",
    loop="product",
    section="Batching",
    target_s=720,
    takes=("requests", "most", "turns"),
    draw=_draw_arrivals,
    limit=lambda rng: _arrivals(rng, 1, 4),
    limit_case="one request for two threads",
    head='''def serve(requests, most, turns):
    """Two threads take batches of up to `most` requests from one queue and run them.

    Write `worker`, the code of each thread; the rest stays. It takes as many
    requests as there are, up to `most`, runs them, and ends when it finds none.
    Any other thread may run at each `yield from`: `turns` says which does.
        yield from acquire(), release()     the lock
        yield from size(), pop()            of the queue; pop gives -1 if it is empty
        yield from run(batch)               takes long: the other thread should go on
    Returned are the requests that were served, the largest batch, how many
    threads ran one at once, and how many never ended.

    >>> serve([7], most=2, turns=[])
    [[7], 1, 1, 0]
    """
''',
    body=THREADS + WORKER + SEEN,
    gap=THREADS
    + """    def worker():
        raise NotImplementedError  # write this
        yield

"""
    + SEEN.rstrip(),
    count=lambda p: (
        tuple(sorted(p.requests)),
        min(p.most, len(p.requests)),
        min(2, -(-len(p.requests) // p.most)),
        0,
    ),
    changes=(
        Change(
            key="no-lock",
            pairs=(("            yield from acquire()\n", ""), ("            yield from release()\n", "")),
            story="Without a lock another thread takes requests between your look at the size and your last pop.",
        ),
        Change(
            key="looked-before",
            pairs=(
                (
                    "            yield from acquire()\n            batch, count = [], min(most, (yield from size()))\n",
                    "            batch, count = [], min(most, (yield from size()))\n            yield from acquire()\n",
                ),
            ),
            story="You looked at the size before you had the lock. It may have changed since.",
        ),
        Change(
            key="runs-under-the-lock",
            pairs=(
                ("            yield from release()\n            if not batch:\n                return\n", ""),
                (
                    "            yield from run(batch)\n",
                    "            if batch:\n                yield from run(batch)\n            yield from release()\n"
                    "            if not batch:\n                return\n",
                ),
            ),
            story="You kept the lock while a batch ran: the other thread could not fetch its own.",
        ),
        Change(
            key="ends-with-the-lock",
            pairs=(
                (
                    "            yield from release()\n            if not batch:\n                return\n",
                    "            if not batch:\n                return\n            yield from release()\n",
                ),
            ),
            story="A thread that found nothing ended and kept the lock. The other waits for it for ever.",
        ),
        Change(
            key="one-at-a-time",
            pairs=(("min(most, (yield from size()))", "min(1, (yield from size()))"),),
            story="Your batches hold one request each.",
        ),
    ),
    hint="Look and take under one lock; run without it; give it back on every way out.",
    source="Birrell, An introduction to programming with threads, DEC SRC report 35, 1989",
)

TASKS = (CACHED, SAMPLER, BPE, LRU, MASK, BATCHER)
