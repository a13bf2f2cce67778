"""Drills on prompts that are read beside running requests: the least chunk, a budget that others use first, prompts
that come together.
"""

import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.searches import holds_up_to
from threeloops.product_loop import batching
from threeloops.simulate.product_loop.serving_play import played
from threeloops.simulate.product_loop.serving_policies import chunked_prefill, continuous_batching
from threeloops.simulate.product_loop.serving_requests import Request
from threeloops.simulate.product_loop.serving_server import Server
from threeloops.simulate.product_loop.serving_steps import AffineStep
from threeloops.units import ms, us

TAUGHT = Taught("product", "Batching")
SARATHI = "Agrawal et al., Sarathi-Serve, 2024, arXiv:2403.02310, sections 3 and 4"

# --- the least chunk -----------------------------------------------------------------------------


def _least(p: Draw) -> float:
    return batching.least_chunk(
        prompt_tokens_per_s=p.rate * p.prompt, decode_step_s=p.step_ms * ms, token_s=p.token_us * us
    )


def _draw_least(rng: random.Random) -> Draw:
    return drawn(
        rate=rng.randrange(3, 14),
        prompt=rng.randrange(900, 2600, 100),
        step_ms=rng.randrange(7, 19),
        token_us=rng.randrange(27, 55, 2),
    )


def _count_least(p: Draw) -> float:
    """Halve the interval between a chunk that falls behind and one that keeps up."""
    return holds_up_to(lambda chunk: p.rate * p.prompt * (p.step_ms * ms + chunk * p.token_us * us) > chunk, high=1e7)


LEAST = Drill(
    key="batching-least-chunk",
    taught=TAUGHT,
    title="A chunk too small",
    unit="token",
    target_s=120,
    apart=1.06,
    wanted=lambda p: 0.25 < p.rate * p.prompt * p.token_us * us < 0.75,
    draw=_draw_least,
    small=_draw_least,
    prompt=lambda p: (
        f"{p.rate} prompts of {p.prompt:,} tokens arrive per second. Every step decodes for the running batch, which"
        f" takes {p.step_ms} ms, and reads a chunk of the waiting prompts at {p.token_us} µs per token. How many prompt"
        " tokens must a step read at least, so that the queue of prompts does not grow?"
    ),
    derive=lambda p: Derivation(
        value=_least(p),
        formula="tokens/s × decode step / (1 − tokens/s × time per token), tokens/s = prompts/s × tokens each",
        substitution=(
            f"{p.rate} × {p.prompt} × {p.step_ms} / 1000 / (1 − {p.rate} × {p.prompt} × {p.token_us} / 1000000)"
        ),
        source=SARATHI,
    ),
    count=_count_least,
    prerequisites=("serving-largest-chunk",),
    slips=(
        Slip("decode-only", lambda p: p.rate * p.prompt * p.step_ms * ms)
        | "You let a step last as long as its decoding. Reading the chunk takes time, and more arrives meanwhile.",
        Slip("one-prompt", lambda p: p.prompt * p.step_ms * ms / (1 - p.prompt * p.token_us * us))
        | "You let one prompt arrive per second. There are more.",
        Slip("all-of-a-second", lambda p: p.rate * p.prompt / (1 - p.rate * p.prompt * p.token_us * us))
        | "That is read in one go. A step is much shorter than a second.",
        Slip("grown-once", lambda p: p.rate * p.prompt * p.step_ms * ms * (1 + p.rate * p.prompt * p.token_us * us))
        | "You lengthened the step by one chunk's time and stopped. A longer step needs a larger chunk again.",
    ),
)

# --- a budget is shared --------------------------------------------------------------------------


def _read(p: Draw) -> float:
    steps = batching.budget_steps(prompt_tokens=p.prompt, token_budget=p.budget, running=p.running)
    return float(steps * p.step_ms * ms)


def _count_budget(p: Draw) -> float:
    """A server takes the steps, which are equally long."""
    requests = [Request(0.0, 1, 1000) for _ in range(p.running)] + [Request(1.0, p.prompt, 1)]
    policy = chunked_prefill(slots=p.running + 1, token_budget=p.budget)
    newcomer = played(requests, server=Server(step_s=AffineStep(base_s=p.step_ms * ms), policy=policy))[-1]
    return newcomer.first_token_s - newcomer.admitted_s


BUDGET = Drill(
    key="batching-budget-ttft",
    taught=TAUGHT,
    title="Who is served first from the budget",
    unit="s",
    target_s=75,
    apart=1.06,
    draw=lambda rng: drawn(
        budget=rng.choice((384, 448, 512, 576, 640)),
        running=rng.randrange(90, 240),
        prompt=rng.randrange(3300, 6400, 10),
        step_ms=rng.randrange(17, 34),
    ),
    small=lambda rng: drawn(
        budget=rng.randrange(20, 40),
        running=rng.randrange(5, 12),
        prompt=rng.randrange(150, 290),
        step_ms=rng.randrange(17, 34),
    ),
    prompt=lambda p: (
        f"A server spends at most {p.budget} tokens in a step, and a step takes {p.step_ms} ms. The {p.running}"
        " requests that are running get one token each, and what is left of the budget reads the prompt of a newcomer,"
        f" {p.prompt:,} tokens. No request ends, and no other prompt waits. How long from the first of these steps"
        " until the newcomer's prompt is read?"
    ),
    derive=lambda p: Derivation(
        value=_read(p),
        formula="⌈prompt / (budget − running)⌉ × step",
        substitution=f"ceil({p.prompt} / ({p.budget} − {p.running})) × {p.step_ms} / 1000",
        source=SARATHI,
    ),
    count=_count_budget,
    slips=(
        Slip("whole-budget", lambda p: -(-p.prompt // p.budget) * p.step_ms * ms)
        | "You gave the whole budget to the prompt. Every running request takes a token of it first.",
        Slip("last-piece", lambda p: p.prompt // (p.budget - p.running) * p.step_ms * ms)
        | "You left out the last, shorter piece.",
        Slip("running-only", lambda p: -(-p.prompt // p.running) * p.step_ms * ms)
        | "You read as many tokens as there are running requests. The prompt gets what they leave.",
        Slip("added", lambda p: -(-p.prompt // (p.budget + p.running)) * p.step_ms * ms)
        | "You added the running requests to the budget. They use some of it up.",
    ),
    function=AsFunction(
        takes=("budget", "running", "prompt", "step_ms"),
        limit=lambda p: {"prompt": 11 * (p.budget - p.running)},
        limit_case="a prompt that fills its last step exactly",
    ),
)

# --- prompts that come together ------------------------------------------------------------------


def _gap(p: Draw) -> float:
    return batching.prefill_first_gap_s(prompt_tokens=p.prompts, step_s=p.step_ms * ms, token_s=p.token_us * us)


def _draw_pile(rng: random.Random) -> Draw:
    return drawn(
        prompts=[rng.randrange(900, 1500, 100), rng.randrange(2600, 4200, 100), rng.randrange(300, 800, 50)],
        step_ms=rng.randrange(16, 29),
        token_us=rng.randrange(31, 49, 2),
    )


def _count_pile(p: Draw) -> float:
    """A server takes the steps; the gaps of the one that was running are looked through."""
    requests = [Request(0.0, 1, 200)] + [Request(1.0, tokens, 1) for tokens in p.prompts]
    step_s = AffineStep(base_s=p.step_ms * ms, per_prefill_token_s=p.token_us * us)
    server = Server(step_s=step_s, policy=continuous_batching(slots=4, order="prefill first"), each_token=True)
    return max(played(requests, server=server)[0].gaps_s)


PILE = Drill(
    key="batching-prefill-first-gap",
    taught=TAUGHT,
    title="Three prompts at the door",
    unit="s",
    target_s=90,
    apart=1.06,
    draw=_draw_pile,
    small=_draw_pile,
    prompt=lambda p: (
        f"A step takes {p.step_ms} ms and {p.token_us} µs more for every prompt token in it. The server puts prompts"
        " first: while any waits unread, it reads all of them, whole, in a step of their own, and no request decodes."
        f" Prompts of {p.prompts[0]:,}, {p.prompts[1]:,} and {p.prompts[2]} tokens have come in, just after a request"
        " got a token. How long does that request wait for its next one?"
    ),
    derive=lambda p: Derivation(
        value=_gap(p),
        formula="step + all prompt tokens × time per token, and the step that decodes",
        substitution=(
            f"{p.step_ms} / 1000 + ({' + '.join(map(str, p.prompts))}) × {p.token_us} / 1000000 + {p.step_ms} / 1000"
        ),
        source=SARATHI,
    ),
    count=_count_pile,
    prerequisites=("serving-chunk-stall",),
    slips=(
        Slip("longest-only", lambda p: 2 * p.step_ms * ms + max(p.prompts) * p.token_us * us)
        | "You read the longest prompt only. All of them come before the next token.",
        Slip("no-decode-step", lambda p: p.step_ms * ms + sum(p.prompts) * p.token_us * us)
        | "You stopped the clock when the prompts were read. The token itself takes another step.",
        Slip("decode-only", lambda p: p.step_ms * ms)
        | "That is an ordinary gap. This server reads prompts before any request decodes.",
        Slip("mean-prompt", lambda p: 2 * p.step_ms * ms + sum(p.prompts) / len(p.prompts) * p.token_us * us)
        | "You read one prompt of mean length. Three of them came.",
    ),
)

DRILLS = (LEAST, BUDGET, PILE)
