"""A case of fine-tuning: a 70B on one node of eight. The host's figures are invented; model and cards are the
catalogue's.
"""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Draw, changed, drawn
from threeloops.models.parameters import model_parameters
from threeloops.room.kinds.cases.case import Case, design, requirements
from threeloops.room.kinds.chains.chain import Step
from threeloops.room.kinds.chains.change import Best, Change, shown
from threeloops.units import GB, TFLOP, billion, fmt_bytes


def _gb(value: float) -> str:
    return fmt_bytes(value, base=10)


GPUS = 8


def _draw_tuning(rng: random.Random) -> Draw:
    part, model = catalogued.part(rng.choice(("a100-sxm4-80gb", "h100-sxm5"))), catalogued.model("llama-3-70b")
    counted = model_parameters(model)
    ((layer, _),) = counted.layers
    return drawn(
        name=catalogued.model_name("llama-3-70b"),
        card=part.name,
        memory_bytes=part["usable_bytes"],
        parameters=counted.total,
        layers=model.num_layers,
        layer=layer.total,
        gathered=2,
        dp=GPUS,
        hidden=model.hidden,
        vocab=model.vocab,
        norm="rmsnorm",
        tokens=rng.choice((3000, 4500, 6500)),
        batch=rng.choice((2, 3)),
        rank=rng.choice((96, 128, 192)),
        matrices=2,  # queries and outputs: keys and values are narrower
        block=rng.choice((16, 32)),
        wide=2 * model.vocab * model.hidden,
        links=rng.choice((4, 8)),
        link=rng.choice((25, 50)) * GB,
        memory=rng.choice((250, 350, 500)) * GB,
        faster=rng.choice((1.5, 2, 2.5)),
        gradient=2,
        state=12,
        weight=2,
        share=rng.choice((0.8, 0.9)),
        speed=rng.choice((250, 350, 450)) * TFLOP,
    )


def _tuning_rounded(p: Draw) -> Draw:
    return changed(p, parameters=round(p.parameters / 1e8) * 10**8)


TUNING = Case(
    key="case-finetune-70b",
    title="Fine-tune a 70B on one node",
    loop="training",
    section="ZeRO and FSDP",
    draw=_draw_tuning,
    requirements=requirements(
        lambda p: f"We have one node of {GPUS} {p.card}. Fine-tune {p.name} on our documents.",
        (
            "what the model shall do afterwards that it does not do now, and how that is measured",
            lambda p: "answer in our forms; four hundred graded examples are kept aside",
        ),
        (
            "whether all weights must change, or adapters would do",
            lambda p: f"not tried yet; adapters of rank {p.rank} are allowed",
        ),
        (
            "how much memory a card and the host have, and how fast they talk",
            lambda p: (
                f"{_gb(p.memory_bytes)} a card; {p.links} links of {_gb(p.link)} per second to a host whose memory"
                f" moves {_gb(p.memory)} per second"
            ),
        ),
        ("how long the sequences are", lambda p: f"{p.tokens:,} tokens, {p.batch} at a time"),
        ("how many tokens there are, and by when it is wanted", lambda p: "a few tens of millions, by Monday"),
    ),
    estimates=(
        Step(drill="memory-model-states", numbers=lambda p: changed(p, dp=1)),
        Step(drill="stack-8-bit-moments", numbers=_tuning_rounded),
        Step(drill="stack-qlora-memory", numbers=_tuning_rounded),
    ),
    design=design(
        lambda p: (
            f"Now the design: {p.name} on {GPUS} {p.card} with {_gb(p.memory_bytes)} each. Which way do you take, and"
            " what do you do if it is not good enough?"
        ),
        (
            "the count first: states of full training against the memory of the whole node",
            "the three ways with their sizes: fully sharded, offloaded to the host, adapters on frozen narrow weights",
            "activations and logits beside the states: recomputation, a loss in pieces",
            "the cheapest way that can be evaluated today comes first, and an evaluation that can refuse it",
            "what is done to the base for serving: adapters merged or not, and in which format",
        ),
        lambda p: (
            f"All states take {shown('memory-model-states', changed(p, dp=1))}; the moments in 8 bits would still take"
            f" {shown('stack-8-bit-moments', _tuning_rounded(p))}. Sharded over {GPUS} cards, with two whole layers at"
            f" work, it is {shown('memory-zero-3', p)} a card, and a card has {_gb(p.memory_bytes)}:"
            " full training does not fit without the host. Frozen in 4 bits with adapters of rank"
            f" {p.rank} it takes {shown('stack-qlora-memory', _tuning_rounded(p))} in all. So adapters first; only if"
            " the graded examples refuse them, full training with the optimiser on the host, whose update takes"
            f" {shown('zero-host-update', _tuning_rounded(p))} a step."
        ),
    ),
    trade_off=Best(
        drill="zero-host-update",
        now=_tuning_rounded,
        text=lambda p: (
            f"It shall be full training after all, with the optimiser on the host: {p.parameters / billion:.1f} billion"
            f" parameters; gradients down and weights up in 16 bits over {p.links} links of {_gb(p.link)} per second;"
            f" 12 bytes of state per parameter read and written at {_gb(p.memory)} per second. Which single change"
            " shortens the update most?"
        ),
        changes=(
            Change(
                key="links",
                text=lambda p: "links twice as fast",
                numbers=lambda p: changed(_tuning_rounded(p), link=2 * p.link),
            ),
            Change(
                key="memory",
                text=lambda p: f"a host whose memory is {p.faster:g} times as fast",
                numbers=lambda p: changed(_tuning_rounded(p), memory=p.faster * p.memory),
            ),
            Change(
                key="state",
                text=lambda p: "moments in 8 bits: 6 bytes of state per parameter",
                numbers=lambda p: changed(_tuning_rounded(p), state=6),
            ),
        ),
    ),
    price=(
        "moments in 8 bits change the training itself: compare the losses over some hundred steps",
        "an update of seconds matters only if steps are short: more tokens per update hide it",
        "a second node would hold the states too, and costs what a node costs",
    ),
    follow_ups=(
        Step(drill="zero-offload-tokens", numbers=lambda p: drawn(share=p.share, speed=p.speed, rate=p.link)),
        Step(drill="memory-logits", numbers=lambda p: p),
    ),
)
