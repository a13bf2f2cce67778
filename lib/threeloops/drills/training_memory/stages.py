"""Drills on what fills the ends of a pipeline: micro-batches in flight at the first stages, logits at the last."""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.simulate.training_loop import in_flight as schedules
from threeloops.training_loop.memory import activations, in_flight
from threeloops.units import fmt_bytes

TAUGHT = Taught("training", "Training memory")

SOURCE_PIPELINE = "Narayanan et al., 2021, arXiv:2104.04473, section 2.2 (1F1B)"
SOURCE_LOGITS = "Korthikanti et al., 2022, arXiv:2205.05198, section 4.3 (the loss keeps the logits in 32 bits)"

# --- micro-batches in flight ---------------------------------------------------------------------


def _draw_flight(rng: random.Random) -> Draw:
    pp, stage = rng.choice(((5, 1), (6, 1), (7, 1), (7, 2)))
    sizes = {
        "layers": pp * rng.choice((8, 10, 12)),
        "layer_bytes": rng.choice(
            (210_000_000, 260_000_000, 290_000_000, 340_000_000, 370_000_000, 410_000_000, 460_000_000)
        ),
    }
    return drawn(pp=pp, stage=stage, micro_batches=rng.choice((18, 26, 46)), **sizes)


def _small_flight(rng: random.Random) -> Draw:
    pp, stage = rng.choice(((5, 1), (6, 1), (7, 2)))
    return drawn(
        pp=pp,
        stage=stage,
        micro_batches=rng.choice((9, 11, 13)),
        layers=pp * rng.choice((2, 3)),
        layer_bytes=rng.choice((3, 5)),
    )


def _derive_flight(p: Draw) -> Derivation:
    waiting = in_flight.micro_batches_in_flight(schedule="1f1b", stage=p.stage, pp=p.pp, micro_batches=p.micro_batches)
    return Derivation(
        value=waiting * p.layers // p.pp * p.layer_bytes,
        formula="min(micro-batches, stages − stage) × layers / stages × bytes of a layer, stages counted from 0",
        substitution=f"min({p.micro_batches}, {p.pp} − {p.stage}) × {p.layers} / {p.pp} × {p.layer_bytes:,}",
        source=SOURCE_PIPELINE,
    )


def _count_flight(p: Draw) -> float:
    waiting = schedules.peak_alive(schedule="1f1b", pp=p.pp, micro_batches=p.micro_batches)[p.stage]
    held = [
        p.layer_bytes
        for _micro_batch in range(waiting)
        for layer in range(p.layers)
        if layer * p.pp // p.layers == p.stage
    ]
    return float(sum(held))


ORDINALS = ("first", "second", "third", "fourth")

FLIGHT = Drill(
    key="memory-in-flight",
    taught=TAUGHT,
    title="Waiting for the way back",
    unit="B",
    capacity=True,
    target_s=90,
    draw=_draw_flight,
    small=_small_flight,
    prompt=lambda p: (
        f"A model of {p.layers} layers is cut into {p.pp} equal pipeline stages and trains with {p.micro_batches}"
        f" micro-batches per step under 1F1B. A layer keeps {fmt_bytes(p.layer_bytes, base=10)} of activations for each"
        f" micro-batch. How many bytes does a GPU of the {ORDINALS[p.stage]} stage hold when it holds most?"
    ),
    derive=_derive_flight,
    count=_count_flight,
    slips=(
        Slip("one-micro-batch", lambda p: p.layers / p.pp * p.layer_bytes)
        | "You kept one micro-batch. By the time its backward pass arrives, others have gone forward.",
        Slip("all-micro-batches", lambda p: p.micro_batches * p.layers / p.pp * p.layer_bytes)
        | "You kept them all. That is GPipe, where every forward pass comes before the first backward pass.",
        Slip("first-stage", lambda p: p.layers * p.layer_bytes)
        | "That is the very first stage. Each stage further on waits less long for its gradients.",
        Slip("wrong-end", lambda p: (p.stage + 1) * p.layers / p.pp * p.layer_bytes)
        | "You counted from the other end. The last stage can turn a micro-batch round at once; the first waits"
        " longest.",
        Slip("one-short", lambda p: (p.pp - p.stage - 1) * p.layers / p.pp * p.layer_bytes)
        | "You counted the warm-up. The micro-batch that goes forward after it is there as well, before the first"
        " one leaves.",
        Slip("all-layers", lambda p: (p.pp - p.stage) * p.layers * p.layer_bytes)
        | "You kept every layer of the model. A stage runs its own.",
    ),
    function=AsFunction(
        takes=("pp", "stage", "micro_batches", "layers", "layer_bytes"),
        limit={"stage": 0, "micro_batches": 3},
        limit_case="fewer micro-batches than stages",
    ),
)

# --- logits --------------------------------------------------------------------------------------


def _draw_logits(rng: random.Random) -> Draw:
    model = catalogued.model(
        key := rng.choice(("llama-3-8b", "qwen2.5-7b", "gemma-2-9b", "gpt-oss-20b", "llama-3-70b"))
    )
    size = {"vocab": model.vocab, "hidden": model.hidden, "norm": model.groups[-1][0].norm}
    return drawn(
        name=catalogued.model_name(key), **size, tokens=rng.randrange(2_000, 8_500, 500), batch=rng.choice((3, 5))
    )


def _derive_logits(p: Draw) -> Derivation:
    kept = activations.head_activations(
        norm=p.norm,
        vocab=p.vocab,
        hidden=p.hidden,
        sequence=p.tokens,
        micro_batch=p.batch,
        bytes_per_element=2,
        kernels="korthikanti",
    )
    return Derivation(
        value=next(item.bytes for item in kept.items if item.name == "log-probabilities"),
        formula="sequences × tokens × vocabulary × 4",
        substitution=f"{p.batch} × {p.tokens} × {p.vocab} × 4",
        source=SOURCE_LOGITS,
    )


def _count_logits(p: Draw) -> float:
    """Run the head and weigh what the loss keeps."""
    import numpy as np

    stream, table = (
        np.ones((p.batch, p.tokens, p.hidden), dtype=np.float16),
        np.ones((p.hidden, p.vocab), dtype=np.float16),
    )
    logits = (stream @ table).astype(np.float32)
    return float((logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))).nbytes)


LOGITS = Drill(
    key="memory-logits",
    taught=TAUGHT,
    title="The last and largest tensor",
    unit="B",
    capacity=True,
    target_s=75,
    draw=_draw_logits,
    small=lambda rng: drawn(
        name="drawn", vocab=rng.choice((23, 31)), hidden=5, norm="rmsnorm", tokens=rng.choice((6, 7)), batch=3
    ),
    prompt=lambda p: (
        f"{p.name} ({p.hidden:,} wide, a vocabulary of {p.vocab:,}) trains in bf16 on {p.batch} sequences of"
        f" {p.tokens:,} tokens. The cross-entropy is not fused: it turns the logits into log-probabilities in fp32 and"
        " keeps those for its backward pass. How large is that tensor?"
    ),
    derive=_derive_logits,
    count=_count_logits,
    slips=(
        Slip("sixteen-bit", lambda p: 2 * p.batch * p.tokens * p.vocab)
        | "You stored it in 16 bits. The model runs in bf16; the loss, as so often, does not.",
        Slip("hidden-size", lambda p: 4 * p.batch * p.tokens * p.hidden)
        | "That is what the head reads. What it writes is as wide as something much larger.",
        Slip("last-token", lambda p: 4 * p.batch * p.vocab)
        | "You predicted after the last token alone. That is serving; in training every token has a next one to"
        " predict.",
        Slip("one-sequence", lambda p: 4 * p.tokens * p.vocab) | "That is one sequence of the batch.",
        Slip("with-its-gradient", lambda p: 8 * p.batch * p.tokens * p.vocab)
        | "You counted its gradient too. It will be there a moment later, but the question is about one tensor.",
    ),
)

DRILLS = (FLIGHT, LOGITS)
