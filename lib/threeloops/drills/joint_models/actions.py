"""Drills on models that see and act: pictures read as tokens, actions refined in steps, and a world made by a
denoiser.
"""

import random
from collections.abc import Callable
from fractions import Fraction

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import billions
from threeloops.driving import data_engine, language_loop
from threeloops.driving.language_loop import LanguageLoop
from threeloops.product_loop import serving
from threeloops.units import BITS_PER_BYTE, GB, TFLOP, billion

TAUGHT = Taught("driving", "End to end")
POPE = "Pope et al., 2022, arXiv:2211.05102, section 2 (2 FLOPs for each parameter and token; a step reads all weights)"
KAPLAN = "Kaplan et al., 2020, arXiv:2001.08361, section 2.1 (2 FLOPs for each parameter and token)"


def _size(rng: random.Random, *billions: float) -> float:
    """Parameters: one of so many billions, to the last one."""
    return float(round(rng.choice(billions) * billion))


def _network(
    rng: random.Random, *, billions: tuple[float, ...], tera: tuple[int, ...], reached: range
) -> dict[str, float]:
    """How large a network is, and what share of which peak it reaches."""
    return {"parameters": _size(rng, *billions), "tera": rng.choice(tera), "reached": rng.choice(reached)}


def _reaches(p: Draw) -> str:
    return f"reaches {p.reached} % of {p.tera:,} TFLOP/s"


def _of_a_peak(right: Callable[[Draw], float], *, whole_peak: str) -> tuple[Slip, Slip]:
    """What goes wrong wherever FLOPs are divided by a share of a peak."""
    return (
        Slip("multiply-adds", lambda p: right(p) / 2)
        | "You counted a multiply-add as one operation. The peak counts it as two.",
        Slip("whole-peak", lambda p: right(p) * p.reached / 100) | whole_peak,
    )


# --- pictures as tokens --------------------------------------------------------------------------


def _draw_pictures(rng: random.Random) -> Draw:
    edge = rng.choice((28, 32))
    return drawn(
        cameras=rng.choice((5, 6, 7)),
        frames=rng.choice((3, 4)),
        edge=edge,
        width=edge * rng.randrange(16, 27),
        height=edge * rng.randrange(9, 15),
        **_network(rng, billions=(2.1, 4.3, 8.2), tera=(260, 517, 1035), reached=range(21, 39)),
    )


def _tokens(p: Draw) -> int:
    return language_loop.picture_tokens(cameras=p.cameras, frames=p.frames, height=p.height, width=p.width, edge=p.edge)


def _read_s(p: Draw) -> float:
    return serving.prefill_s(
        tokens=_tokens(p),
        flops_per_token=2 * p.parameters,
        peak_flops_per_s=p.tera * TFLOP,
        utilisation=p.reached / 100,
    )


def _count_pictures(p: Draw) -> float:
    """Every square of every picture, one after the other."""
    passed = Fraction(0)
    a_token = 2 * Fraction(p.parameters) / (Fraction(p.tera * TFLOP) * Fraction(p.reached, 100))
    for _camera in range(p.cameras):
        for _frame in range(p.frames):
            for _row in range(0, p.height, p.edge):
                for _column in range(0, p.width, p.edge):
                    passed += a_token
    return float(passed)


PICTURES = Drill(
    key="joint-picture-tokens",
    taught=TAUGHT,
    title="What the pictures cost before a word is written",
    unit="s",
    target_s=120,
    draw=_draw_pictures,
    small=lambda rng: drawn(
        cameras=rng.choice((2, 3)),
        frames=2,
        edge=4,
        width=4 * rng.randrange(3, 6),
        height=4 * rng.choice((2, 3)),
        parameters=2.1 * billion,
        tera=260,
        reached=rng.randrange(21, 39),
    ),
    prompt=lambda p: (
        f"At each decision a model of {billions(p.parameters)} parameters reads {p.frames} pictures of each of"
        f" {p.cameras} cameras, resized to {p.width} × {p.height}; a square of {p.edge} × {p.edge} pixels becomes one"
        f" token. Reading a prompt, its chip {_reaches(p)}. How long does it read the"
        " pictures' tokens (attention and the vision encoder left out)?"
    ),
    derive=lambda p: Derivation(
        value=_read_s(p),
        formula="cameras × pictures × squares × 2 × parameters / (share × peak)",
        substitution=(
            f"{p.cameras} × {p.frames} × ({p.width} / {p.edge}) × ({p.height} / {p.edge}) × 2 × {p.parameters:g} /"
            f" ({p.reached} / 100 × {p.tera} × 1e12)"
        ),
        source=POPE,
    ),
    count=_count_pictures,
    slips=(
        Slip("one-picture-each", lambda p: _read_s(p) / p.frames)
        | "You took one picture of each camera. The model reads some seconds, not a moment.",
        Slip("one-camera", lambda p: _read_s(p) / p.cameras) | "Those are the pictures of one camera.",
        *_of_a_peak(_read_s, whole_peak="You divided by the whole peak. Which part of it does a prompt reach?"),
    ),
)

# --- actions in steps ----------------------------------------------------------------------------

NUMBERS = 2  # of a waypoint: along and across


def _draw_actions(rng: random.Random) -> Draw:
    return drawn(
        waypoints=rng.randrange(30, 81),
        steps=rng.randrange(5, 13),
        model=_size(rng, 6.1, 8.2, 10.4),
        model_bits=rng.choice((4, 8)),
        expert=_size(rng, 1.3, 1.9, 2.3),
        expert_bits=16,
        bandwidth=rng.choice((137, 205, 273)),
    )


def _small_actions(rng: random.Random) -> Draw:
    p = _draw_actions(rng)
    return drawn(**{**vars(p), "waypoints": rng.randrange(3, 9), "steps": rng.choice((2, 3))})


def _step_s(p: Draw, parameters: float, bits: float) -> float:
    """One reading of all weights."""
    return LanguageLoop(
        num_parameters=parameters,
        bits=bits,
        prompt_tokens=1,
        memory_bytes_per_s=p.bandwidth * GB,
        peak_flops_per_s=TFLOP,
        utilisation=1.0,
    ).step_s


def _token_by_token_s(p: Draw, *, numbers: int = NUMBERS) -> float:
    return float(numbers * p.waypoints * _step_s(p, p.model, p.model_bits))


def _refined_s(p: Draw, *, steps: int | None = None, bits: float | None = None) -> float:
    return (p.steps if steps is None else steps) * _step_s(p, p.expert, p.expert_bits if bits is None else bits)


def _count_actions(p: Draw) -> float:
    """Bytes read, token after token and step after step."""
    written = refined = Fraction(0)
    for _waypoint in range(p.waypoints):
        for _number in range(NUMBERS):
            written += Fraction(p.model) * p.model_bits / BITS_PER_BYTE
    for _step in range(p.steps):
        refined += Fraction(p.expert) * p.expert_bits / BITS_PER_BYTE
    return float(written / refined)


ACTIONS = Drill(
    key="joint-action-steps",
    taught=TAUGHT,
    title="A trajectory, token by token or all at once",
    unit="",
    target_s=110,
    draw=_draw_actions,
    small=_small_actions,
    prompt=lambda p: (
        f"A model of {billions(p.model)} parameters in {p.model_bits} bits could write a plan of {p.waypoints}"
        " waypoints as tokens, one for each of a waypoint's two numbers. Its action expert, of"
        f" {billions(p.expert)} parameters in {p.expert_bits} bits, instead refines all of them together in {p.steps}"
        f" steps. Memory moves {p.bandwidth} GB/s, and each token and each step reads all weights of its model once."
        " How many times as long do the tokens take as the steps?"
    ),
    derive=lambda p: Derivation(
        value=_token_by_token_s(p) / _refined_s(p),
        formula="(2 × waypoints × bytes of the model) / (steps × bytes of the expert)",
        substitution=(
            f"({NUMBERS} × {p.waypoints} × {p.model:g} × {p.model_bits} / 8) /"
            f" ({p.steps} × {p.expert:g} × {p.expert_bits} / 8)"
        ),
        source=POPE,
    ),
    count=_count_actions,
    slips=(
        Slip("a-token-a-waypoint", lambda p: _token_by_token_s(p, numbers=1) / _refined_s(p))
        | "You wrote one token a waypoint. How many numbers does it have?",
        Slip("one-step", lambda p: _token_by_token_s(p) / _refined_s(p, steps=1))
        | "You let the expert be done in one step.",
        Slip("same-bits", lambda p: _token_by_token_s(p) / _refined_s(p, bits=p.model_bits))
        | "You gave both the same bits. Bytes are read, not parameters.",
        Slip("same-model", lambda p: NUMBERS * p.waypoints / p.steps)
        | "That is tokens over steps. A token and a step read different weights.",
    ),
)

# --- a world by denoising ------------------------------------------------------------------------


def _denoised_s(p: Draw) -> float:
    return data_engine.denoised_gpu_s(
        frames_per_s=p.rate,
        steps=p.steps,
        places=p.places,
        num_parameters=p.parameters,
        peak_flops_per_s=p.tera * TFLOP,
        utilisation=p.reached / 100,
    )


def _count_denoised(p: Draw) -> float:
    """Frame by frame, step by step, place by place."""
    flops = 0
    for _frame in range(p.rate):
        for _step in range(p.steps):
            for _place in range(p.places):
                flops += 2 * round(p.parameters)
    return float(Fraction(flops) / (Fraction(p.tera * TFLOP) * Fraction(p.reached, 100)))


DENOISED = Drill(
    key="joint-denoised-second",
    taught=TAUGHT,
    title="A second of a world that is learnt",
    unit="s",
    target_s=110,
    draw=lambda rng: drawn(
        rate=rng.choice((6, 8, 10, 12)),
        steps=rng.randrange(18, 51),
        places=rng.randrange(600, 2_400, 40),
        **_network(rng, billions=(2.4, 6.5, 8.4), tera=(312, 989), reached=range(31, 49)),
    ),
    small=lambda rng: drawn(
        rate=rng.choice((2, 3)),
        steps=rng.randrange(3, 6),
        places=rng.randrange(5, 12),
        parameters=2.4 * billion,
        tera=312,
        reached=rng.randrange(31, 49),
    ),
    prompt=lambda p: (
        f"A world model makes {p.rate} frames a second by denoising: {p.steps} steps a frame, and in each of them a"
        f" network of {billions(p.parameters)} parameters runs over all {p.places:,} places of the frame. A GPU"
        f" {_reaches(p)}. How long does it compute for one second of that world (attention and the"
        " decoder to pixels left out)?"
    ),
    derive=lambda p: Derivation(
        value=_denoised_s(p),
        formula="frames × steps × 2 × parameters × places / (share × peak)",
        substitution=(
            f"{p.rate} × {p.steps} × 2 × {p.parameters:g} × {p.places} / ({p.reached} / 100 × {p.tera} × 1e12)"
        ),
        source=KAPLAN,
    ),
    count=_count_denoised,
    slips=(
        Slip("one-frame", lambda p: _denoised_s(p) / p.rate) | "That is one frame of it.",
        Slip("one-step", lambda p: _denoised_s(p) / p.steps) | "You ran the network once a frame. Each step runs it.",
        *_of_a_peak(_denoised_s, whole_peak="You divided by the whole peak. Which part of it does the GPU reach?"),
    ),
)

DRILLS = (PICTURES, ACTIONS, DENOISED)
