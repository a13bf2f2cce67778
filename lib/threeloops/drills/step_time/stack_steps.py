"""Drills on the optimisation stack: micro-batches behind an update, the weight of a token in it, and what repairs are
worth in money.
"""

import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.inner_loop import scaling
from threeloops.simulate.inner_loop import step as player
from threeloops.training_loop.updates import accumulation
from threeloops.units import ms

TAUGHT = Taught("training", "The optimisation stack")
SOURCE_CONFIG = (
    "DeepSpeed, configuration JSON (train_batch_size = micro-batch × accumulation steps × GPUs), 2026; micro-batches:"
    " Narayanan et al., 2021, arXiv:2104.04473"
)
SOURCE_ACCUMULATION = "Hugging Face, Fixing Gradient Accumulation, 2024, transformers pull request 34191"
SOURCE_AMDAHL = (
    "Amdahl, 1967, doi:10.1145/1465482.1465560; a loader beside the device: PyTorch documentation, torch.utils.data,"
    " 2026"
)

# --- how many micro-batches ----------------------------------------------------------------------


def _draw_steps(rng: random.Random) -> Draw:
    p = drawn(
        micro=rng.choice((2, 3, 5, 6)),
        sequence=rng.choice((2048, 4096, 8192)),
        tp=rng.choice((2, 4)),
        pp=rng.choice((3, 5, 6)),
    )
    p.replicas, p.steps = rng.randrange(12, 60, 4), rng.randrange(9, 75)
    p.tokens, p.gpus = p.micro * p.sequence * p.replicas * p.steps, p.replicas * p.tp * p.pp
    return p


def _small_steps(rng: random.Random) -> Draw:
    p = _draw_steps(rng)
    p.sequence, p.replicas = rng.choice((7, 11, 16)), rng.randrange(3, 8)
    p.tokens, p.gpus = p.micro * p.sequence * p.replicas * p.steps, p.replicas * p.tp * p.pp
    return p


def _count_steps(p: Draw) -> float:
    """Every GPU group takes its micro-batch, round after round, until all tokens have been seen."""
    seen, rounds = 0, 0
    while seen < p.tokens:
        rounds += 1
        for first_gpu in range(0, p.gpus, p.tp * p.pp):
            assert first_gpu < p.gpus
            seen += sum(p.sequence for _ in range(p.micro))
    return float(rounds)


STEPS = Drill(
    key="stack-accumulation-steps",
    taught=TAUGHT,
    title="Micro-batches behind one update",
    unit="",
    whole="exact",
    target_s=90,
    draw=_draw_steps,
    small=_small_steps,
    prompt=lambda p: (
        f"A recipe asks for {p.tokens:,} tokens per update. The job runs on {p.gpus:,} GPUs; each copy of the model is"
        f" cut by tensor parallelism {p.tp} and pipeline parallelism {p.pp}. A micro-batch of {p.micro} sequences of"
        f" {p.sequence:,} tokens fits. How many micro-batches does each copy run, forward and backward, before one"
        " update?"
    ),
    derive=lambda p: Derivation(
        value=float(
            accumulation.steps(
                tokens_per_update=p.tokens, micro_batch=p.micro, sequence=p.sequence, replicas=p.gpus // (p.tp * p.pp)
            )
        ),
        formula="tokens per update / (micro-batch × sequence × replicas), replicas = GPUs / (tensor × pipeline)",
        substitution=f"{p.tokens} / ({p.micro} × {p.sequence} × {p.gpus} / ({p.tp} × {p.pp}))",
        source=SOURCE_CONFIG,
    ),
    count=_count_steps,
    slips=(
        Slip("all-gpus", lambda p: p.tokens / (p.micro * p.sequence * p.gpus))
        | "You gave every GPU a micro-batch of its own. GPUs that share one copy of the model work on the same"
        " one.",
        Slip("one-copy", lambda p: p.tokens / (p.micro * p.sequence))
        | "You let one copy of the model read the whole batch. How many copies are there?",
        Slip("one-sequence", lambda p: p.tokens / (p.sequence * p.replicas))
        | "You put one sequence into a micro-batch. The question says how many fit.",
        Slip("pipeline-as-copies", lambda p: p.tokens / (p.micro * p.sequence * p.replicas * p.pp))
        | "You counted the stages of a pipeline as copies of the model. They hand the same micro-batch on.",
    ),
)

# --- what a token weighs -------------------------------------------------------------------------


def _draw_weight(rng: random.Random) -> Draw:
    number = rng.randrange(4, 8)
    return drawn(tokens=[rng.randrange(200, 700, 10), *(rng.randrange(1200, 6000, 10) for _ in range(number - 1))])


def _count_weight(p: Draw) -> float:
    """Give every token a loss of 0 but one in the shortest, which has 1, and see what the two averages make of it."""
    shortest = p.tokens.index(min(p.tokens))
    losses = [
        [1.0 if (place, token) == (shortest, 0) else 0.0 for token in range(number)]
        for place, number in enumerate(p.tokens)
    ]
    means = [sum(piece) / len(piece) for piece in losses]
    together = [loss for piece in losses for loss in piece]
    return (sum(means) / len(means)) / (sum(together) / len(together))


WEIGHT = Drill(
    key="stack-token-weight",
    taught=TAUGHT,
    title="A token in a short micro-batch",
    unit="",
    target_s=90,
    apart=1.06,
    draw=_draw_weight,
    small=lambda rng: drawn(tokens=[rng.randrange(5, 9), *(rng.randrange(20, 60) for _ in range(rng.randrange(3, 6)))]),
    prompt=lambda p: (
        f"A training loop accumulates {len(p.tokens)} micro-batches per update. Without padding they hold"
        f" {', '.join(f'{n:,}' for n in p.tokens[:-1])} and {p.tokens[-1]:,} tokens. Each takes the mean loss of its"
        " own tokens, divides it by the number of micro-batches, and goes backward. In the gradient that comes out,"
        " how many times its due does a token of the shortest micro-batch weigh, if its due is what it would weigh in"
        " one big batch?"
    ),
    derive=lambda p: Derivation(
        value=accumulation.token_weights(p.tokens)[p.tokens.index(min(p.tokens))],
        formula="all tokens / (micro-batches × tokens of this micro-batch)",
        substitution=f"({' + '.join(map(str, p.tokens))}) / ({len(p.tokens)} × {min(p.tokens)})",
        source=SOURCE_ACCUMULATION,
    ),
    count=_count_weight,
    slips=(
        Slip("upside-down", lambda p: len(p.tokens) * min(p.tokens) / sum(p.tokens))
        | "You divided the other way round. Do tokens in short micro-batches weigh more, or less?",
        Slip("not-averaged", lambda p: sum(p.tokens) / min(p.tokens))
        | "You left out that the micro-batches' losses are averaged as well.",
        Slip("against-longest", lambda p: max(p.tokens) / min(p.tokens))
        | "You compared with a token of the longest micro-batch, which has not its due either.",
        Slip("per-micro-batch", lambda p: 1 / len(p.tokens))
        | "That is what the micro-batch weighs. How many tokens share it?",
        Slip("longest", lambda p: sum(p.tokens) / (len(p.tokens) * max(p.tokens)))
        | "You answered for the longest micro-batch.",
    ),
    function=AsFunction(
        takes=("tokens",),
        limit=lambda p: {"tokens": [p.tokens[0]] * len(p.tokens)},
        limit_case="micro-batches of equal length",
    ),
)

# --- in money ------------------------------------------------------------------------------------


def _before(p: Draw) -> scaling.JobStep:
    return scaling.JobStep(loader_s=p.loader_ms * ms, device_s={"model": p.model_ms * ms, "update": p.update_ms * ms})


def _after(p: Draw) -> scaling.JobStep:
    return _before(p).with_faster("loader", p.loader).with_faster("model", p.model).with_faster("update", p.update)


def _draw_dollars(rng: random.Random) -> Draw:
    return drawn(
        dollars=rng.randrange(14_000, 95_000, 1000),
        loader_ms=rng.randrange(700, 900, 10),
        model_ms=rng.randrange(480, 660, 10),
        update_ms=rng.randrange(90, 160, 10),
        loader=rng.choice((1.3, 1.4, 1.5, 1.6)),
        model=rng.choice((1.9, 2.2, 2.6)),
        update=rng.choice((1.8, 2.4, 2.9)),
    )


def _count_dollars(p: Draw) -> float:
    """Play both jobs, loader and device on one clock, and pay by the hour."""

    def pace_s(loader_s: float, stages: tuple[float, float]) -> float:
        return player.play(num_steps=400, workers=1, batch_s=loader_s, queue=2, stages=stages).pace_s(skip=200)

    before = pace_s(p.loader_ms * ms, (p.model_ms * ms, p.update_ms * ms))
    after = pace_s(p.loader_ms * ms / p.loader, (p.model_ms * ms / p.model, p.update_ms * ms / p.update))
    return float(p.dollars - p.dollars / before * after)


DOLLARS = Drill(
    key="stack-dollars-saved",
    taught=TAUGHT,
    title="Three repairs in money",
    unit="dollar",
    target_s=150,
    apart=1.06,
    draw=_draw_dollars,
    small=_draw_dollars,
    prompt=lambda p: (
        f"A training job costs ${p.dollars:,}, paid by the hour. Loading the next batch takes {p.loader_ms} ms and runs"
        f" beside the device, which needs {p.model_ms} ms for forward and backward and then {p.update_ms} ms for the"
        f" update. Three repairs are made together: loading becomes {p.loader} times faster, forward and backward"
        f" {p.model} times, the update {p.update} times. How many dollars does the whole job cost less?"
    ),
    derive=lambda p: Derivation(
        value=p.dollars * (1 - _after(p).total_s / _before(p).total_s),
        formula="cost × (1 − slower of the two after / slower of the two before)",
        substitution=(
            f"{p.dollars} × (1 − max({p.loader_ms} / {p.loader}, {p.model_ms} / {p.model} + {p.update_ms} / {p.update})"
            f" / max({p.loader_ms}, {p.model_ms} + {p.update_ms}))"
        ),
        source=SOURCE_AMDAHL,
    ),
    count=_count_dollars,
    prerequisites=("amdahl-pace-setter",),
    slips=(
        Slip("what-is-left", lambda p: p.dollars * _after(p).total_s / _before(p).total_s)
        | "That is what the job costs afterwards. The question asks what is saved.",
        Slip("factors-multiplied", lambda p: p.dollars * (1 - 1 / (p.loader * p.model * p.update)))
        | "You multiplied the factors. Each acts on a part of its own, and two parts run side by side.",
        Slip("device-only", lambda p: p.dollars * (1 - _after(p).busy_s / _before(p).total_s))
        | "You followed the device. Look who is slower after the repairs.",
        Slip("added", lambda p: p.dollars * (1 - _after(p).total_s / (_before(p).loader_s + _before(p).busy_s)))
        | "You added loading and computing at the start. They run at the same time.",
        Slip("model-only", lambda p: p.dollars * (1 - _before(p).busy_s / p.model / _before(p).total_s))
        | "You divided everything on the device by one factor, and forgot who else has to keep up.",
    ),
)

DRILLS = (STEPS, WEIGHT, DOLLARS)
