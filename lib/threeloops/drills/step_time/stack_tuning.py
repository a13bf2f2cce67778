"""Drills on the optimisation stack after pre-training: memory of quantised fine-tuning, and the share of writing in a
step of reinforcement learning.
"""

import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, changed, drawn
from threeloops.simulate.training_loop import rollouts as player
from threeloops.training_loop.updates import adapters, rollouts
from threeloops.units import billion, ms, us

TAUGHT = Taught("training", "The optimisation stack")
SOURCE_QLORA = (
    "Dettmers et al., QLoRA, 2023, arXiv:2305.14314, section 3; Hu et al., LoRA, 2021, arXiv:2106.09685, section 4.1"
)
SOURCE_ROLLOUT = "Zhou et al., APRIL, 2025, arXiv:2509.18521 (the longest responses stall the batch)"

# --- frozen in few bits --------------------------------------------------------------------------


def _adapter(p: Draw) -> int:
    return adapters.adapter_parameters([(p.hidden, p.hidden, p.matrices * p.layers)], rank=p.rank)


def _bits(p: Draw) -> float:
    """Bits of a frozen weight with its share of the scale."""
    return float(4 + 16 / p.block)


def _frozen(p: Draw) -> float:
    return float(p.parameters * _bits(p) / 8)


def _small_qlora(rng: random.Random) -> Draw:
    p = drawn(
        hidden=rng.choice((8, 12, 20)),
        layers=rng.randrange(2, 5),
        rank=rng.choice((2, 3)),
        matrices=rng.choice((2, 3, 4)),
        block=rng.choice((16, 32)),
    )
    p.parameters = p.block * rng.randrange(90, 200)
    return p


def _derive_qlora(p: Draw) -> Derivation:
    tuned = adapters.fine_tuning(
        frozen_parameters=p.parameters, frozen_bits=_bits(p), adapter_parameters=_adapter(p), recipe="fp32"
    )
    return Derivation(
        value=tuned.total_bytes,
        formula="parameters × (4 + 16 / block) / 8 + 16 × layers × matrices × 2 × rank × hidden",
        substitution=(
            f"{p.parameters} × (4 + 16 / {p.block}) / 8 + 16 × {p.layers} × {p.matrices} × 2 × {p.rank} × {p.hidden}"
        ),
        source=SOURCE_QLORA,
    )


def _count_qlora(p: Draw) -> float:
    """Bits of every frozen weight and of every block's scale; then four fp32 numbers for every entry of every small
    matrix.
    """
    bits = 0
    for place in range(p.parameters):
        bits += 4 + (16 if place % p.block == 0 else 0)
    trained = 0
    for _ in range(p.layers * p.matrices):
        trained += sum(1 for _ in range(p.rank) for _ in range(p.hidden)) + sum(
            1 for _ in range(p.hidden) for _ in range(p.rank)
        )
    return bits / 8 + sum(4 * trained for _ in ("weight", "gradient", "momentum", "variance"))


QLORA = Drill(
    key="stack-qlora-memory",
    taught=TAUGHT,
    title="Frozen in four bits",
    unit="B",
    capacity=True,
    target_s=180,
    apart=1.06,
    draw=lambda rng: drawn(
        parameters=rng.randrange(6, 35) * billion,
        hidden=rng.choice((4096, 5120, 6144, 7168)),
        layers=rng.randrange(28, 61, 2),
        rank=rng.choice((64, 96, 128, 192)),
        matrices=rng.choice((2, 3, 4)),
        block=rng.choice((16, 32)),
    ),
    small=_small_qlora,
    prompt=lambda p: (
        f"A model of {p.parameters / billion:g} billion parameters is frozen in 4 bits, one 16-bit scale per block of"
        f" {p.block} weights. In each of its {p.layers} layers, {p.matrices} matrices of {p.hidden:,} × {p.hidden:,}"
        f" get an adapter of rank {p.rank}, trained by Adam, all in fp32. How much memory do frozen weights, adapters,"
        " gradients and optimiser state take together?"
    ),
    derive=_derive_qlora,
    count=_count_qlora,
    slips=(
        Slip("scales-forgotten", lambda p: p.parameters / 2 + 16 * _adapter(p))
        | "You forgot the scales of the frozen weights.",
        Slip("sixteen-bit", lambda p: 2 * p.parameters + 16 * _adapter(p))
        | "You froze the weights in sixteen bits. The question says four.",
        Slip("frozen-gradients", lambda p: _frozen(p) + 2 * p.parameters + 16 * _adapter(p))
        | "You gave the frozen weights gradients. Who would use them?",
        Slip("no-moments", lambda p: _frozen(p) + 8 * _adapter(p))
        | "You counted adapters and their gradients. Adam keeps something, too.",
        Slip("one-matrix", lambda p: _frozen(p) + 16 * _adapter(p) / p.matrices)
        | "You put one adapter into each layer. Read again how many matrices get one.",
        Slip("adapters-forgotten", _frozen) | "You counted the frozen weights alone. What is trained?",
    ),
)

# --- writing, judging, learning ------------------------------------------------------------------


def _lengths(p: Draw) -> list[int]:
    return [p.usual] * (p.responses - 1) + [p.longest]


def _writing_s(p: Draw, steps: float) -> float:
    """Time to write all responses if it took so many decoding steps."""
    return float(steps * (p.weights_ms * ms) + sum(_lengths(p)) * (p.response_us * us))


def _rest_s(p: Draw) -> float:
    return float(p.reward_s + p.update_s)


def _share(p: Draw, writing_s: float) -> float:
    return writing_s / (writing_s + _rest_s(p))


def _derive_rollout(p: Draw) -> Derivation:
    written = rollouts.rollout_s(_lengths(p), weights_s=p.weights_ms * ms, response_s=p.response_us * us)
    shown = (
        f"({p.longest} × {p.weights_ms} / 1000 + ({p.responses - 1} × {p.usual} + {p.longest}) × {p.response_us} /"
        " 1000000)"
    )
    return Derivation(
        value=rollouts.RlStep(rollout_s=written, reward_s=p.reward_s, update_s=p.update_s).rollout_share,
        formula="writing / (writing + judging + update), writing = longest × weights + all tokens × response",
        substitution=f"{shown} / ({shown} + {p.reward_s} + {p.update_s})",
        source=SOURCE_ROLLOUT,
    )


def _count_rollout(p: Draw) -> float:
    """Play every decoding step, with a seat for everybody."""
    written = player.play(
        _lengths(p), seats=p.responses, weights_s=p.weights_ms * ms, response_s=p.response_us * us
    ).finished_s
    return float(written / (written + p.reward_s + p.update_s))


ROLLOUT = Drill(
    key="stack-rollout-share",
    taught=TAUGHT,
    title="Writing before learning",
    unit="",
    target_s=180,
    apart=1.06,
    draw=lambda rng: drawn(
        responses=rng.randrange(96, 400, 4),
        usual=rng.randrange(900, 2500, 50),
        longest=rng.randrange(4000, 9000, 50),
        weights_ms=rng.randrange(5, 10),
        response_us=rng.choice((15, 25, 40)),
        reward_s=rng.randrange(3, 20),
        update_s=rng.randrange(25, 120),
    ),
    small=lambda rng: changed(
        drawn(responses=rng.randrange(4, 9), usual=rng.randrange(10, 20), longest=rng.randrange(40, 80)),
        weights_ms=rng.randrange(5, 10),
        response_us=rng.choice((900, 1500)),
        reward_s=0.1,
        update_s=rng.randrange(2, 9) / 10,
    ),
    prompt=lambda p: (
        f"One step of reinforcement learning: a model writes {p.responses} responses side by side, {p.responses - 1} of"
        f" {p.usual:,} tokens and one of {p.longest:,}. A decoding step takes {p.weights_ms} ms to read the weights,"
        f" and {p.response_us} µs more for each response still being written. Then they are judged for {p.reward_s} s,"
        f" and the update takes {p.update_s} s. Phases follow each other. Which share of the step is writing?"
    ),
    derive=_derive_rollout,
    count=_count_rollout,
    slips=(
        Slip("mean-length", lambda p: _share(p, _writing_s(p, steps=sum(_lengths(p)) / p.responses)))
        | "You let all responses end together, after their mean length. The update waits for the last one.",
        Slip("the-rest", lambda p: _rest_s(p) / (_writing_s(p, steps=p.longest) + _rest_s(p)))
        | "That is the share of everything else.",
        Slip("ratio", lambda p: _writing_s(p, steps=p.longest) / _rest_s(p))
        | "You divided writing by the rest. A share refers to the whole.",
        Slip("weights-only", lambda p: _share(p, p.longest * (p.weights_ms * ms)))
        | "You read the weights and forgot what each response adds.",
        Slip("nobody-leaves", lambda p: _share(p, p.longest * (p.weights_ms * ms + p.response_us * us * p.responses)))
        | "You let every response cost time until the last one is complete. Those that are finished cost nothing.",
    ),
    function=AsFunction(
        takes=("responses", "usual", "longest", "weights_ms", "response_us", "reward_s", "update_s"),
        limit=lambda p: {"longest": p.usual},
        limit_case="responses that are all of one length",
    ),
)

DRILLS = (ROLLOUT,)
MEMORY_DRILLS = (QLORA,)
