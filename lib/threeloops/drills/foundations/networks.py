"""Drills on small networks: their parameters, one step of training by hand, and what training a large one emits."""

import random
from fractions import Fraction

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.foundations import chain_rule, dense_networks, training_energy
from threeloops.units import hour, kB

TAUGHT = Taught("inner", "Foundations: networks")

SOURCE_BACKPROPAGATION = "Rumelhart, Hinton, Williams, Nature 323, 1986, doi:10.1038/323533a0"
SOURCE_LAYERS = "Goodfellow, Bengio, Courville, Deep Learning, 2016, chapter 6"
SOURCE_CARBON = "Touvron et al., LLaMA, 2023, arXiv:2302.13971, section 6"

# --- parameters ----------------------------------------------------------------------------------


def _draw_parameters(rng: random.Random) -> Draw:
    return drawn(widths=(rng.randrange(2, 6), rng.randrange(4, 13), rng.randrange(2, 7), rng.randrange(1, 4)))


def _count_parameters(p: Draw) -> float:
    """Every unit named, with a number for every unit before it and one for itself."""
    named = [
        (layer, unit, source)
        for layer in range(1, 4)
        for unit in range(p.widths[layer])
        for source in ("bias", *range(p.widths[layer - 1]))
    ]
    return float(len(named))


def _weights(p: Draw) -> float:
    a, b, c, d = p.widths
    return float(a * b + b * c + c * d)


PARAMETERS = Drill(
    key="foundations-parameters",
    taught=TAUGHT,
    title="Everything that is learned",
    unit="",
    whole="exact",
    target_s=60,
    apart=1 / 0.9,
    draw=_draw_parameters,
    small=_draw_parameters,
    prompt=lambda p: (
        f"A network has {p.widths[0]} inputs, hidden layers of {p.widths[1]} and {p.widths[2]} ReLU units, and an"
        f" output layer of {p.widths[3]}. Every unit sees the whole layer before it and has a bias. How many parameters"
        " does training adjust?"
    ),
    derive=lambda p: Derivation(
        value=float(dense_networks.parameters(p.widths)),
        formula="sum over layers of (inputs + 1) × outputs",
        substitution=" + ".join(
            f"({inputs} + 1) * {outputs}" for inputs, outputs in zip(p.widths, p.widths[1:], strict=False)
        ),
        source=SOURCE_LAYERS,
    ),
    count=_count_parameters,
    slips=(
        Slip("no-biases", _weights) | "You counted the weights. Every unit adds one more number of its own.",
        Slip("units", lambda p: float(sum(p.widths))) | "You counted units. What is learned lies between them.",
        Slip("first-layer-only", lambda p: float((p.widths[0] + 1) * p.widths[1]))
        | "You stopped after the first hidden layer.",
        Slip("inputs-biased", lambda p: float(_weights(p) + sum(p.widths) + p.widths[0]))
        | "You gave the inputs parameters. They are given, nothing about them is learned.",
    ),
)

# --- one step of training ------------------------------------------------------------------------


def _draw_step(rng: random.Random) -> Draw:
    return drawn(
        x=rng.choice((3, 4)),
        first=rng.choice((0.4, 0.5, 0.6)),
        second=rng.choice((1.3, 1.4, 1.6, 1.7)),
        target=rng.choice((6, 7, 8)),
        learning_rate=rng.choice((0.01, 0.02, 0.03)),
    )


def _net(p: Draw) -> chain_rule.TwoLayers:
    return chain_rule.TwoLayers(first=p.first, second=p.second)


def _moved_by(p: Draw, blame: float) -> float:
    return float(p.first - p.learning_rate * blame)


def _error(p: Draw) -> float:
    return float(p.second * p.first * p.x - p.target)


def _count_step(p: Draw) -> float:
    """The slope of the loss from two nudges of w1, in exact fractions: a parabola's is the same on both sides."""
    first, nudge = Fraction(str(p.first)), Fraction(1, 1000)

    def loss(weight: Fraction) -> Fraction:
        answer = Fraction(str(p.second)) * max(weight * int(p.x), Fraction(0))
        return (answer - int(p.target)) * (answer - int(p.target))

    slope = (loss(first + nudge) - loss(first - nudge)) / (2 * nudge)
    return float(first - Fraction(str(p.learning_rate)) * slope)


STEP = Drill(
    key="foundations-one-step",
    taught=TAUGHT,
    title="One step through two layers",
    unit="",
    target_s=150,
    apart=1 / 0.9,
    draw=_draw_step,
    small=_draw_step,
    prompt=lambda p: (
        f"A network answers w2 * relu(w1 * x), with w1 = {p.first} and w2 = {p.second}. At x = {p.x} it should answer"
        f" {p.target}; the loss is the squared error. What is w1 after one step of gradient descent with a learning"
        f" rate of {p.learning_rate}?"
    ),
    derive=lambda p: Derivation(
        value=chain_rule.after_step(_net(p), x=p.x, target=p.target, learning_rate=p.learning_rate).first,
        formula="w1 − learning rate × 2 × (w2 × w1 × x − target) × w2 × x",
        substitution=(
            f"{p.first} - {p.learning_rate} * 2 * ({p.second} * {p.first} * {p.x} - {p.target}) * {p.second} * {p.x}"
        ),
        source=SOURCE_BACKPROPAGATION,
    ),
    count=_count_step,
    slips=(
        Slip("uphill", lambda p: _moved_by(p, -2 * _error(p) * p.second * p.x))
        | "You went uphill: the sign of the step got lost.",
        Slip("half-of-it", lambda p: _moved_by(p, _error(p) * p.second * p.x))
        | "The derivative of a square has a factor that you left out.",
        Slip("second-layer-skipped", lambda p: _moved_by(p, 2 * _error(p) * p.x))
        | "The blame passes through the second layer on its way back. Which factor does it pick up there?",
        Slip("input-skipped", lambda p: _moved_by(p, 2 * _error(p) * p.second))
        | "You stopped at the sum inside the first unit. How much does it move when w1 does?",
        Slip(
            "the-other-weight",
            lambda p: chain_rule.after_step(_net(p), x=p.x, target=p.target, learning_rate=p.learning_rate).second,
        )
        | "That is the new value of the other weight.",
    ),
)

# --- what a run emits ----------------------------------------------------------------------------


def _tonnes(p: Draw, *, gpus: float, hours: float, overhead: float) -> float:
    used = training_energy.energy_j(gpu_s=gpus * hours * hour, power_w=p.power_w, facility_overhead=overhead)
    return training_energy.emitted_kg(energy_j=used, kg_per_kwh=p.kg_per_kwh) / kB


def _count_carbon(p: Draw) -> float:
    """A meter for every GPU, read every hour."""
    kwh = sum(Fraction(p.power_w, 1000) for _ in range(p.gpus) for _ in range(24 * p.days))
    return float(kwh * Fraction(str(p.overhead)) * Fraction(str(p.kg_per_kwh)) / kB)


CARBON = Drill(
    key="foundations-carbon",
    taught=TAUGHT,
    title="From GPUs to tonnes",
    unit="",
    target_s=120,
    draw=lambda rng: drawn(
        gpus=rng.choice((384, 512, 640, 1536)),
        days=rng.choice((11, 17, 23, 35)),
        power_w=rng.choice((350, 400, 700)),
        overhead=rng.choice((1.12, 1.2, 1.35)),
        kg_per_kwh=rng.choice((0.21, 0.27, 0.385, 0.42)),
    ),
    small=lambda rng: drawn(
        gpus=rng.choice((2, 3)), days=rng.choice((3, 5)), power_w=rng.choice((350, 700)), overhead=1.2, kg_per_kwh=0.27
    ),
    prompt=lambda p: (
        f"A run keeps {p.gpus} GPUs busy for {p.days} days, each at {p.power_w} W. The building draws {p.overhead}"
        f" times what its GPUs draw (its PUE), and the grid emits {p.kg_per_kwh} kg of CO2 per kWh. How many tonnes"
        " does the run emit? Give the number of tonnes, without a unit."
    ),
    derive=lambda p: Derivation(
        value=_tonnes(p, gpus=p.gpus, hours=24 * p.days, overhead=p.overhead),
        formula="GPUs × hours × kW per GPU × PUE × kg per kWh / 1000",
        substitution=f"{p.gpus} * 24 * {p.days} * {p.power_w} / 1000 * {p.overhead} * {p.kg_per_kwh} / 1000",
        source=SOURCE_CARBON,
    ),
    count=_count_carbon,
    slips=(
        Slip("building-left-out", lambda p: _tonnes(p, gpus=p.gpus, hours=24 * p.days, overhead=1))
        | "You counted the GPUs alone. The building around them draws power too.",
        Slip("one-gpu", lambda p: _tonnes(p, gpus=1, hours=24 * p.days, overhead=p.overhead))
        | "You let a single GPU run for all those days.",
        Slip("days-as-hours", lambda p: _tonnes(p, gpus=p.gpus, hours=p.days, overhead=p.overhead))
        | "You took days for hours. A kilowatt-hour is a kilowatt for an hour.",
        Slip("kilograms", lambda p: _tonnes(p, gpus=p.gpus, hours=24 * p.days, overhead=p.overhead) * kB)
        | "Those are kilograms.",
        Slip("overhead-divided", lambda p: _tonnes(p, gpus=p.gpus, hours=24 * p.days, overhead=1) / p.overhead)
        | "You divided by the PUE. It says how much more the building draws, not how much less.",
    ),
)

DRILLS = (PARAMETERS, STEP, CARBON)
