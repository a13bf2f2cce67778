"""Drills on promises: how large a chunk of a prompt an ITL leaves room for, what chunks cost the newcomer, and how
many requests were served as promised.
"""

import itertools
import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.product_loop import batching, serving
from threeloops.units import ms, us

TAUGHT = Taught("product", "Batching")
PER_MS = round(ms / us)  # microseconds in a millisecond
SARATHI = "Agrawal et al., Sarathi-Serve, 2024, arXiv:2403.02310, section 4 (chunked prefills)"

# --- the stall -----------------------------------------------------------------------------------


def _stall(p: Draw, tokens: int) -> float:
    """The time of a step that makes its tokens and reads so many of a prompt."""
    return serving.chunked_prefill_s(tokens=tokens, chunk=tokens, decode_step_s=p.step_ms * ms, token_s=p.token_us * us)


def _count_stall(p: Draw) -> float:
    """Note when tokens of a running request come while the prompt goes through, and take the longest gap."""
    now, came, left = 0.0, [0.0], p.prompt
    while left:
        for _token in range(min(p.chunk, left)):
            now, left = now + p.token_us * us, left - 1
        now += p.step_ms * ms
        came.append(now)
    return max(after - before for before, after in itertools.pairwise(came))


STALL = Drill(
    key="serving-chunk-stall",
    taught=TAUGHT,
    title="A user pastes a book",
    unit="s",
    target_s=80,
    draw=lambda rng: drawn(
        step_ms=rng.randrange(19, 28),
        token_us=rng.randrange(34, 62, 3),
        prompt=rng.randrange(6100, 9200, 100),
        chunk=rng.choice((1024, 1280, 1536)),
    ),
    small=lambda rng: drawn(
        step_ms=rng.randrange(19, 28),
        token_us=rng.choice((1000, 2000)),
        prompt=rng.randrange(61, 75),
        chunk=rng.choice((10, 12)),
    ),
    prompt=lambda p: (
        f"A decode step of the running batch takes {p.step_ms} ms. A prompt of {p.prompt:,} tokens arrives; reading it"
        f" costs {p.token_us} µs per token, and the server reads {p.chunk} tokens of it in each step, before that"
        " step's decoding. How long do the running requests wait between two tokens while this lasts?"
    ),
    derive=lambda p: Derivation(
        value=_stall(p, p.chunk),
        formula="decode step + chunk × time per prompt token",
        substitution=f"{p.step_ms} / 1000 + {p.chunk} × {p.token_us} / 1000000",
        source=SARATHI,
    ),
    count=_count_stall,
    slips=(
        Slip("whole-prompt", lambda p: _stall(p, p.prompt))
        | "You read the whole prompt at once. Chunks are there to avoid just that.",
        Slip("no-decoding", lambda p: p.chunk * p.token_us * us)
        | "You forgot the step itself. The running requests want their token, too.",
        Slip("no-prompt", lambda p: p.step_ms * ms)
        | "You waited for the decode step only. A piece of the prompt is read in it.",
        Slip(
            "until-read",
            lambda p: serving.chunked_prefill_s(
                tokens=p.prompt, chunk=p.chunk, decode_step_s=p.step_ms * ms, token_s=p.token_us * us
            ),
        )
        | "That is how long the prompt takes as a whole. In between the others get their tokens.",
    ),
)

# --- the largest chunk ---------------------------------------------------------------------------


def _count_chunk(p: Draw) -> float:
    """Put token after token into the step until it would take too long."""
    spent_us, tokens = PER_MS * p.step_ms, 0
    while spent_us + p.token_us <= PER_MS * p.itl_ms:
        spent_us, tokens = spent_us + p.token_us, tokens + 1
    return float(tokens)


CHUNK = Drill(
    key="serving-largest-chunk",
    taught=TAUGHT,
    title="Room for a piece of the prompt",
    unit="token",
    whole="down",
    loose="bound",
    target_s=80,
    draw=lambda rng: drawn(
        itl_ms=rng.randrange(62, 90), step_ms=rng.randrange(17, 27), token_us=rng.choice((31, 37, 43, 53))
    ),
    small=lambda rng: drawn(
        itl_ms=rng.randrange(62, 90), step_ms=rng.randrange(17, 27), token_us=rng.choice((370, 430))
    ),
    prompt=lambda p: (
        f"You promised {p.itl_ms} ms between tokens. A decode step of the full batch takes {p.step_ms} ms, and reading"
        f" a prompt costs {p.token_us} µs per token. How many tokens of a newcomer's prompt can go into each step at"
        " most?"
    ),
    derive=lambda p: Derivation(
        value=float(batching.largest_chunk(itl_s=p.itl_ms * ms, decode_step_s=p.step_ms * ms, token_s=p.token_us * us)),
        formula="⌊(ITL − decode step) / time per prompt token⌋",
        substitution=f"floor(({p.itl_ms} − {p.step_ms}) × 1000 / {p.token_us})",
        source=SARATHI,
    ),
    count=_count_chunk,
    prerequisites=("serving-chunk-stall",),
    slips=(
        Slip("whole-step", lambda p: PER_MS * p.itl_ms / p.token_us)
        | "You gave the whole gap to the prompt. The batch wants to decode in it, too.",
        Slip("decode-only", lambda p: PER_MS * p.step_ms / p.token_us)
        | "You filled the time of the decode step. It is what the step leaves that counts.",
        Slip("added", lambda p: PER_MS * (p.itl_ms + p.step_ms) / p.token_us)
        | "You added the decode step to what was promised. It uses some of it up.",
        Slip("milli-by-micro", lambda p: (p.itl_ms - p.step_ms) / p.token_us)
        | "You divided milliseconds by microseconds.",
    ),
)

# --- the newcomer pays ---------------------------------------------------------------------------


def _newcomer(p: Draw, steps: float, tokens: float) -> float:
    return float(steps * p.step_ms * ms + tokens * p.token_us * us)


def _count_newcomer(p: Draw) -> float:
    now_us, left = 0, p.prompt
    while left:
        for _token in range(min(p.chunk, left)):
            now_us, left = now_us + p.token_us, left - 1
        now_us += PER_MS * p.step_ms
    return now_us * us


NEWCOMER = Drill(
    key="serving-chunked-ttft",
    taught=TAUGHT,
    title="Politeness has a price",
    unit="s",
    target_s=110,
    draw=lambda rng: drawn(
        step_ms=rng.randrange(14, 20),
        token_us=rng.randrange(31, 46, 2),
        chunk=(chunk := rng.choice((1024, 1280, 1536))),
        prompt=chunk * rng.randrange(7, 11) + 90,
    ),
    small=lambda rng: drawn(
        step_ms=rng.randrange(21, 30),
        token_us=rng.choice((1000, 1300)),
        chunk=(chunk := rng.choice((10, 20))),
        prompt=chunk * rng.choice((6, 7)) + 3,
    ),
    prompt=lambda p: (
        f"A prompt of {p.prompt:,} tokens is read in chunks of {p.chunk}, one per step. Reading costs {p.token_us} µs"
        f" per token, and every step, the last one too, also decodes for the running batch, which takes {p.step_ms} ms."
        " No other request waits. How long until the prompt is read and its last step done?"
    ),
    derive=lambda p: Derivation(
        value=serving.chunked_prefill_s(
            tokens=p.prompt, chunk=p.chunk, decode_step_s=p.step_ms * ms, token_s=p.token_us * us
        ),
        formula="⌈prompt / chunk⌉ × decode step + prompt × time per token",
        substitution=f"ceil({p.prompt} / {p.chunk}) × {p.step_ms} / 1000 + {p.prompt} × {p.token_us} / 1000000",
        source=SARATHI,
    ),
    count=_count_newcomer,
    prerequisites=("serving-chunk-stall",),
    slips=(
        Slip("alone", lambda p: _newcomer(p, 0, p.prompt))
        | "You read the prompt alone. A running batch decodes in every one of its steps.",
        Slip("per-token", lambda p: _newcomer(p, p.prompt, p.prompt))
        | "You decoded after every token of the prompt. A step reads a chunk of them.",
        Slip("steps-only", lambda p: _newcomer(p, -(-p.prompt // p.chunk), 0))
        | "You counted the decoding only. The prompt is read, too.",
        Slip("one-chunk", lambda p: _newcomer(p, 1, p.chunk)) | "That is one step. The prompt has more chunks.",
    ),
)

# --- goodput -------------------------------------------------------------------------------------


def _draw_good(rng: random.Random) -> Draw:
    requests = rng.randrange(1300, 2400, 20)
    late, slow = requests * rng.randrange(22, 27) // 100, requests * rng.randrange(30, 36) // 100
    return drawn(
        seconds=rng.choice((40, 50, 60)),
        requests=requests,
        late=late,
        slow=slow,
        both=requests * rng.randrange(12, 16) // 100,
    )


def _count_good(p: Draw) -> float:
    """Line the requests up so that so many are late, slow and both, and look at each."""
    good = 0
    for request in range(p.requests):
        late, slow = request < p.late, p.late - p.both <= request < p.late - p.both + p.slow
        good += not late and not slow
    return float(good / p.seconds)


GOOD = Drill(
    key="serving-goodput",
    taught=TAUGHT,
    title="Served as promised",
    unit="",
    target_s=75,
    draw=_draw_good,
    small=lambda rng: drawn(
        seconds=rng.choice((4, 5)),
        requests=rng.choice((50, 60)),
        late=rng.choice((12, 13)),
        slow=rng.choice((17, 18)),
        both=rng.choice((6, 7)),
    ),
    prompt=lambda p: (
        f"In {p.seconds} s a server finishes {p.requests:,} requests. In {p.late} the first token came too late, in"
        f" {p.slow} the gaps between tokens were too long; {p.both} of these had both faults. What is its goodput in"
        " requests per second, if a request counts that keeps both promises?"
    ),
    derive=lambda p: Derivation(
        value=serving.goodput_per_s(
            requests=p.requests, late_first=p.late, slow_between=p.slow, both=p.both, seconds=p.seconds
        ),
        formula="(requests − late − slow + both) / seconds",
        substitution=f"({p.requests} − {p.late} − {p.slow} + {p.both}) / {p.seconds}",
        source="Zhong et al., DistServe, 2024, arXiv:2401.09670, section 1 (goodput)",
    ),
    count=_count_good,
    slips=(
        Slip("throughput", lambda p: p.requests / p.seconds)
        | "That is throughput: it counts those that were too late, too.",
        Slip("both-twice", lambda p: (p.requests - p.late - p.slow) / p.seconds)
        | "You took those with both faults off twice. Each of them is in both numbers.",
        Slip("all-three", lambda p: (p.requests - p.late - p.slow - p.both) / p.seconds)
        | "You took those with both faults off three times. The first two numbers have them already.",
        Slip("either", lambda p: (p.requests - p.both) / p.seconds)
        | "You let a request count that broke one promise only. Both have to be kept.",
        Slip("slow-only", lambda p: (p.requests - p.slow) / p.seconds)
        | "You looked at the gaps only. The first token was promised, too.",
    ),
)

DRILLS = (STALL, CHUNK, NEWCOMER, GOOD)
