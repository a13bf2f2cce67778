"""Drills on agents, and on what an answer takes at the wall."""

import math
import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.searches import holds_up_to
from threeloops.product_loop.operating import agents, wall_power
from threeloops.units import kWh, million

TAUGHT = Taught("product", "Capacity and cost")

SOURCE_AGENTS = "by definition, 2026: a prompt that grows by what each call brings, and chances that multiply"
SOURCE_ENERGY = "Touvron et al., LLaMA, 2023, arXiv:2302.13971, section 6 (power times time times PUE)"

# --- tokens that are read again ------------------------------------------------------------------


def _prompts(p: Draw) -> int:
    return agents.agent_prompt_tokens(first=p.first, added=p.answer + p.tool, calls=p.calls)


def _count_prompts(p: Draw) -> float:
    """Call after call, with the context as a list of tokens."""
    context, read = [0] * p.first, 0
    for _call in range(p.calls):
        read += len(context)
        context += [1] * p.answer + [2] * p.tool
    return float(read)


PROMPTS = Drill(
    key="agent-tokens-read",
    taught=TAUGHT,
    title="An agent that reads everything again",
    unit="token",
    whole="exact",
    loose="digits",
    target_s=90,
    draw=lambda rng: drawn(
        first=rng.randrange(1800, 9000, 100),
        answer=rng.randrange(110, 600, 10),
        tool=rng.randrange(400, 3900, 50),
        calls=rng.randrange(9, 45),
    ),
    small=lambda rng: drawn(
        first=rng.randrange(20, 90), answer=rng.randrange(3, 9), tool=rng.randrange(4, 30), calls=rng.randrange(3, 9)
    ),
    prompt=lambda p: (
        f"An agent begins with a prompt of {p.first} tokens. Each call of the model writes {p.answer} tokens and calls"
        f" a tool, whose output of {p.tool} tokens is appended, and the whole context is the next call's prompt."
        f" Without a prompt cache, how many prompt tokens are read in {p.calls} calls?"
    ),
    derive=lambda p: Derivation(
        value=float(_prompts(p)),
        formula="calls × first prompt + (answer + tool's output) × calls × (calls − 1) / 2",
        substitution=f"{p.calls} × {p.first} + ({p.answer} + {p.tool}) × {p.calls} × ({p.calls} − 1) / 2",
        source=SOURCE_AGENTS,
    ),
    count=_count_prompts,
    slips=(
        Slip("read-once", lambda p: p.first + (p.answer + p.tool) * (p.calls - 1.0))
        | "That is the last prompt, which is what a perfect prompt cache would leave. Nothing is cached here.",
        Slip("grown-at-once", lambda p: p.calls * (p.first + (p.answer + p.tool) * (p.calls - 1.0)))
        | "You read the longest prompt at every call. The context grows from call to call.",
        Slip("tools-only", lambda p: p.calls * p.first + p.tool * p.calls * (p.calls - 1) / 2)
        | "You appended the tools' outputs alone. What the model wrote is in the context, too.",
        Slip("nothing-added", lambda p: float(p.calls * p.first))
        | "You read the first prompt every time. What is appended is read, too.",
    ),
)

# --- a chain of steps ----------------------------------------------------------------------------


def _draw_chain(rng: random.Random) -> Draw:
    return drawn(steps=rng.randrange(5, 41), percent=rng.randrange(55, 91))


def _count_chain(p: Draw) -> float:
    """Between always right and never: halved until the chain, step by step, is right as often as wanted."""

    def right(fault: float) -> float:
        return math.prod(1 - fault for _step in range(p.steps))

    return holds_up_to(lambda fault: right(fault) > p.percent / 100, high=1)


CHAIN = Drill(
    key="agent-step-faults",
    taught=TAUGHT,
    title="How seldom a step may fail",
    unit="",
    target_s=90,
    draw=_draw_chain,
    small=_draw_chain,
    prompt=lambda p: (
        f"An agent's task takes {p.steps} steps, and every one of them must be right; they fail independently, and"
        f" nothing is tried again. The whole task shall be right {p.percent} times of 100. What share of single steps"
        " may fail at most?"
    ),
    derive=lambda p: Derivation(
        value=1 - agents.step_reliability(whole=p.percent / 100.0, steps=p.steps),
        formula="1 − success of the whole^(1 / steps)",
        substitution=f"1 − ({p.percent} / 100)**(1 / {p.steps})",
        source=SOURCE_AGENTS,
    ),
    count=_count_chain,
    slips=(
        Slip("as-the-whole", lambda p: 1 - p.percent / 100.0)
        | "You let each step fail as often as the whole. Failures of all steps come together.",
        Slip("step-right", lambda p: agents.step_reliability(whole=p.percent / 100.0, steps=p.steps))
        | "That is how often a step is right. How often may it fail?",
        Slip("success-divided", lambda p: p.percent / 100.0 / p.steps)
        | "You shared the success among the steps. Every step must be right: chances multiply.",
        Slip("faults-divided", lambda p: (1 - p.percent / 100.0) / p.steps)
        | "You shared the failures evenly among the steps. That holds only where they are very few.",
    ),
)

# --- energy --------------------------------------------------------------------------------------


def _draw_energy(rng: random.Random) -> Draw:
    return drawn(
        gpus=rng.choice((2, 4, 8, 16)),
        gpu_w=rng.randrange(410, 980, 10),
        host_percent=rng.randrange(12, 45),
        pue=rng.choice((1.12, 1.16, 1.2, 1.25, 1.3, 1.35, 1.4)),
        tokens=rng.randrange(310, 2900, 10),
        rate=rng.randrange(1200, 24000, 100),
    )


def _energy(p: Draw, *, gpus: int, host: float, pue: float) -> float:
    return wall_power.answer_energy_j(
        num_gpus=gpus, gpu_w=p.gpu_w, host_share=host, facility_overhead=pue, tokens=p.tokens, tokens_per_s=p.rate
    )


def _derive_energy(p: Draw) -> Derivation:
    return Derivation(
        value=million * _energy(p, gpus=p.gpus, host=p.host_percent / 100.0, pue=p.pue) / kWh,
        formula="GPUs × W × (1 + rest of the server) × PUE × tokens / (tokens/s) × 1,000,000 / 3,600,000 J",
        substitution=(
            f"{p.gpus} × {p.gpu_w} × (1 + {p.host_percent} / 100) × {p.pue} × {p.tokens} / {p.rate} × 1000000 / 3600000"
        ),
        source=SOURCE_ENERGY,
    )


def _count_energy(p: Draw) -> float:
    """Joules of a token, one token after another, at the GPU, in the server, at the wall."""
    joules = 0.0
    for _token in range(p.tokens):
        gpus = sum(p.gpu_w / p.rate for _ in range(p.gpus))
        server = gpus + gpus * p.host_percent / 100.0
        joules += server * p.pue
    return joules * (million / kWh)


ENERGY = Drill(
    key="energy-of-answers",
    taught=TAUGHT,
    title="A million answers, at the wall",
    unit="",
    target_s=110,
    draw=_draw_energy,
    small=_draw_energy,
    prompt=lambda p: (
        f"A server with {p.gpus} GPUs makes {p.rate:,} output tokens/s for all its requests together. Each GPU draws"
        f" {p.gpu_w} W meanwhile, the rest of the server {p.host_percent} % of what its GPUs draw, and the building's"
        f" PUE is {p.pue}. An answer has {p.tokens} tokens. How many kWh do a million answers take at the wall?"
    ),
    derive=_derive_energy,
    count=_count_energy,
    slips=(
        Slip("gpus-only", lambda p: _energy(p, gpus=p.gpus, host=0, pue=1) * million / kWh)
        | "You counted the GPUs alone. Host, fans and the building draw power, too.",
        Slip("one-gpu", lambda p: _derive_energy(p).value / p.gpus)
        | "You counted one GPU. The rate is that of all of them.",
        Slip("joules", lambda p: _derive_energy(p).value * 3600)
        | "Those are thousands of joules. A kWh is 3,600 of them.",
        Slip("pue-divided", lambda p: _derive_energy(p).value / p.pue**2)
        | "You divided by the PUE. It says how much more the building draws.",
    ),
)

DRILLS = (PROMPTS, CHAIN, ENERGY)
