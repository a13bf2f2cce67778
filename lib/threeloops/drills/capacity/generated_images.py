"""Drills on pictures that a diffusion transformer makes for users: what one costs, and what a larger one costs."""

import random
from fractions import Fraction

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.product_loop.operating import image_generation
from threeloops.units import TFLOP

TAUGHT = Taught("product", "Capacity and cost")
DIT = "Peebles and Xie, 2022, arXiv:2212.09748, section 3.2 (tokens of a latent)"
DIT_GUIDED = f"{DIT}; Ho and Salimans, 2022, arXiv:2207.12598 (two runs a step)"
DOWNSAMPLED, PATCH = 8, 2
TOKEN = DOWNSAMPLED * PATCH  # pixels of a token's side


def _model(rng: random.Random) -> dict[str, int]:
    return {"layers": rng.randrange(22, 44), "hidden": rng.choice((1152, 1536, 1792, 2304, 2560, 3072))}


def _flops(p: Draw, tokens: int) -> float:
    return image_generation.denoiser_flops(tokens=tokens, num_layers=p.layers, hidden=p.hidden)


def _tokens(height: int, width: int, *, patch: int = PATCH) -> int:
    return image_generation.latent_tokens(height=height, width=width, downsampled=DOWNSAMPLED, patch=patch)


def _described(p: Draw) -> str:
    return (
        f"{p.layers} layers of width {p.hidden:,} (attention, and an MLP of four times the width: 12 × width² weights a"
        " layer)"
    )


LATENT = f"a picture's latent has sides {DOWNSAMPLED} times shorter, and {PATCH} × {PATCH} latent pixels are a token"

# --- a picture -----------------------------------------------------------------------------------


def _picture_s(
    p: Draw, *, runs: int = 2, steps: int | None = None, patch: int = PATCH, attends: bool = True, reached: float = 0
) -> float:
    tokens = _tokens(p.height, p.width, patch=patch)
    pairs = 0 if attends else 4 * p.layers * p.hidden * tokens**2
    return image_generation.generated_image_s(
        run_flops=_flops(p, tokens) - pairs,
        steps=p.steps if steps is None else steps,
        runs_per_step=runs,
        peak_flops_per_s=p.tera * TFLOP,
        utilisation=(reached or p.reached) / 100,
    )


def _count_seconds(p: Draw) -> float:
    """Multiply-adds one by one: run after run, layer after layer, token after token, and every pair of tokens."""
    tokens = [(row, column) for row in range(0, p.height, TOKEN) for column in range(0, p.width, TOKEN)]
    macs = 0
    for _step in range(p.steps):
        for _guided in (True, False):
            for _layer in range(p.layers):
                for _token in tokens:
                    for outputs in (p.hidden,) * 4 + (4 * p.hidden,):  # query, key, value, output; into the MLP
                        macs += p.hidden * outputs
                    macs += 4 * p.hidden * p.hidden  # out of it
                    for _other in tokens:
                        macs += p.hidden  # a score
                        macs += p.hidden  # and its share of the value
    return float(Fraction(2 * macs) / (Fraction(p.tera * TFLOP) * Fraction(p.reached, 100)))


SECONDS = Drill(
    key="image-seconds",
    taught=TAUGHT,
    title="What a generated picture costs",
    unit="s",
    target_s=170,
    draw=lambda rng: drawn(
        **_model(rng),
        height=rng.choice((768, 896, 1024, 1152, 1344)),
        width=rng.choice((832, 960, 1088, 1216, 1536)),
        steps=rng.randrange(18, 51),
        tera=rng.choice((312, 989, 2250)),
        reached=rng.randrange(31, 56),
    ),
    small=lambda rng: drawn(
        layers=rng.choice((2, 3)),
        hidden=rng.choice((5, 7)),
        height=TOKEN * rng.choice((2, 3)),
        width=TOKEN * rng.choice((4, 5)),
        steps=rng.choice((3, 5)),
        tera=312,
        reached=rng.randrange(31, 56),
    ),
    prompt=lambda p: (
        f"A diffusion transformer has {_described(p)}. It makes a picture of {p.height} × {p.width} pixels; {LATENT};"
        f" every token attends to every token. It takes {p.steps} steps, with classifier-free guidance. A GPU reaches"
        f" {p.reached} % of {p.tera:,} TFLOP/s. How long does it compute for one picture (text encoder, conditioning"
        " and decoder left out)?"
    ),
    derive=lambda p: Derivation(
        value=_picture_s(p),
        formula=(
            "steps × 2 runs × layers × (24 × width² × tokens + 4 × width × tokens²) / (share × peak), tokens = height /"
            " 16 × width / 16"
        ),
        substitution=(
            f"{p.steps} × 2 × {p.layers} × (24 × {p.hidden}^2 × {_tokens(p.height, p.width)} + 4 × {p.hidden} ×"
            f" {_tokens(p.height, p.width)}^2) / ({p.reached} / 100 × {p.tera} × 1e12)"
        ),
        source=DIT_GUIDED,
    ),
    count=_count_seconds,
    slips=(
        Slip("one-run", lambda p: _picture_s(p, runs=1))
        | "That is half: one run a step, or a multiply-add counted as one operation. Guidance needs an estimate"
        " with the prompt and one without.",
        Slip("no-pairs", lambda p: _picture_s(p, attends=False))
        | "You left out attention's pairs of tokens. A picture has thousands of them.",
        Slip("latent-pixels", lambda p: _picture_s(p, patch=1))
        | "You made a token of each pixel of the latent. How many of them does a patch take?",
        Slip("one-step", lambda p: _picture_s(p, steps=1)) | "You ran the network once. Each step runs it.",
        Slip("whole-peak", lambda p: _picture_s(p, reached=100))
        | "You divided by the whole peak. Which part of it does the GPU reach?",
    ),
)

# --- a larger one --------------------------------------------------------------------------------


def _larger(p: Draw, *, patch: int = PATCH) -> float:
    large, small = (_flops(p, _tokens(side, side, patch=patch)) for side in (p.large, p.small))
    return large / small


def _count_larger(p: Draw) -> float:
    """Multiply-adds of both pictures, a token and a pair at a time."""

    def macs(side: int) -> int:
        counted = 0
        tokens = [(row, column) for row in range(0, side, TOKEN) for column in range(0, side, TOKEN)]
        for _layer in range(p.layers):
            for _token in tokens:
                counted += sum(p.hidden * outputs for outputs in (p.hidden,) * 4 + (4 * p.hidden,) * 2)
                for _other in tokens:
                    counted += p.hidden + p.hidden  # a score, and its share of the value
        return counted

    return macs(p.large) / macs(p.small)


LARGER = Drill(
    key="image-larger",
    taught=TAUGHT,
    title="What a larger generated picture costs",
    unit="",
    target_s=130,
    draw=lambda rng: drawn(
        **_model(rng),
        small=rng.choice((512, 640, 768, 896)),
        large=rng.choice((1152, 1280, 1408, 1536, 1792, 2048)),
    ),
    small=lambda rng: drawn(
        layers=2, hidden=rng.choice((3, 5, 7)), small=TOKEN * rng.choice((2, 3)), large=TOKEN * rng.choice((4, 5, 6))
    ),
    prompt=lambda p: (
        f"A diffusion transformer has {_described(p)}, and every token of a picture attends to every other;"
        f" {LATENT}. How many times as much arithmetic does a picture of {p.large} × {p.large} pixels take as one of"
        f" {p.small} × {p.small}, in as many steps?"
    ),
    derive=lambda p: Derivation(
        value=_larger(p),
        formula=(
            "(24 × width² × tokens + 4 × width × tokens²) of the larger picture / of the smaller, tokens = (side / 16)²"
        ),
        substitution=(
            f"(24 × {p.hidden}^2 × {_tokens(p.large, p.large)} + 4 × {p.hidden} × {_tokens(p.large, p.large)}^2) /"
            f" (24 × {p.hidden}^2 × {_tokens(p.small, p.small)} + 4 × {p.hidden} × {_tokens(p.small, p.small)}^2)"
        ),
        source=DIT,
    ),
    count=_count_larger,
    slips=(
        Slip("tokens-only", lambda p: (p.large / p.small) ** 2)
        | "That is how many times as many tokens there are. Attention's part grows faster than that.",
        Slip("all-squared", lambda p: (p.large / p.small) ** 4)
        | "You squared the tokens everywhere. Which part of a layer works on each token by itself?",
        Slip("by-the-side", lambda p: p.large / p.small) | "That is how much longer a side is. Tokens fill an area.",
        Slip("larger-latent-pixels", lambda p: _larger(p, patch=1))
        | "You made a token of each pixel of the latent. How many of them does a patch take?",
    ),
)

DRILLS = (SECONDS, LARGER)
