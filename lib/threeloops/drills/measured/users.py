"""A drill on a total throughput, and what one user sees of it."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, drawn
from threeloops.drills.engine.phrasing import people
from threeloops.drills.measured.served import (
    COST,
    SOURCE_LOOP,
    is_shared,
    numbers_of,
    output_per_gpu_s,
    points_where,
    server,
    small_point,
)
from threeloops.product_loop import serving

# --- what one user sees ----------------------------------------------------------------------------


def total_per_gpu(p: Draw) -> float:
    """What a report prints that adds prompts and answers up, with four digits."""
    return float(f"{output_per_gpu_s(p) * (p.prompt + p.answer) / p.answer:.4g}")


def _draw_user(rng: random.Random) -> Draw:
    p = drawn(**numbers_of(rng.choice(points_where(is_shared))))
    p.total = total_per_gpu(p)
    return p


def _small_user(rng: random.Random) -> Draw:
    p = small_point(rng)
    p.whole_s = rng.randrange(20, 90)
    p.total = p.requests * (p.prompt + p.answer) / p.whole_s / p.tp
    return p


def _user(p: Draw) -> float:
    return serving.user_tokens_per_s(
        total_tokens_per_gpu_s=p.total,
        num_gpus=p.tp,
        requests=p.requests,
        prompt_tokens=p.prompt,
        output_tokens=p.answer,
    )


def _count_user(p: Draw) -> float:
    """One user's answer, token by token, and how long the server needs to handle as many tokens as all users have."""
    handled = sum(1 for _ in range(p.requests) for _ in range(p.prompt + p.answer))
    took_s = handled / (p.total * p.tp)
    return float(sum(1 for _ in range(p.answer)) / took_s)


USER = Drill(
    key="measured-user-rate",
    taught=COST,
    title="What one user sees of a total throughput",
    unit="token/s",
    target_s=110,
    draw=_draw_user,
    small=_small_user,
    prompt=lambda p: (
        f"{server(p)}. The report gives a total throughput of {people(p.total)} tokens per second and GPU, prompts and"
        " answers added up. How many tokens per second of the answer does one user see, the wait for the first token"
        " included?"
    ),
    derive=lambda p: Derivation(
        value=_user(p),
        formula="total per GPU × GPUs × answer / (prompt + answer) / requests",
        substitution=f"{p.total!r} × {p.tp} × {p.answer} / ({p.prompt} + {p.answer}) / {p.requests}",
        source=f"{SOURCE_LOOP}; {p.row}",
    ),
    count=_count_user,
    slips=(
        Slip("prompts-counted", lambda p: _user(p) * (p.prompt + p.answer) / p.answer)
        | "You let the user see the tokens of the prompt as well. Which part of the total is output?",
        Slip("one-gpu", lambda p: _user(p) / p.tp)
        | "You shared out one GPU's tokens. All GPUs of the server work on each request.",
        Slip("all-users", lambda p: _user(p) * p.requests) | "That is what all users together see.",
        Slip("total-of-the-server", lambda p: p.total * p.tp)
        | "That is the total of the server, prompts included. One user is asked for.",
    ),
)

DRILLS = (USER,)
