"""Drills on who made it faster: shares of a product, what the order does to them, and what the hours are worth."""

import math
import random
from fractions import Fraction
from typing import Any

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.driving import shares
from threeloops.simulate.driving import repair_orders
from threeloops.units import hour

TAUGHT = Taught("driving", "The story closed")
SHAPLEY = "Shapley, A Value for n-Person Games, 1953, doi:10.1515/9781400881970-018"

# --- shares of the logarithm ---------------------------------------------------------------------


def _factors(p: Draw) -> dict[str, float]:
    return {"kernels": p.kernels, "cluster": p.cluster, "queue": p.queue}


def _count_log(p: Draw) -> float:
    """Halve the time again and again, and count whose halvings they were."""
    halvings = {}
    for name, factor in _factors(p).items():
        halvings[name] = 0
        while factor > 1:
            factor, halvings[name] = factor / 2, halvings[name] + 1
    return halvings["kernels"] / sum(halvings.values())


def _part(p: Draw, weight: Any) -> float:
    weights = {name: weight(factor) for name, factor in _factors(p).items()}
    return float(weights["kernels"] / sum(weights.values()))


LOG = Drill(
    key="story-log-share",
    taught=TAUGHT,
    title="A share that does not depend on the order",
    unit="",
    target_s=120,
    draw=lambda rng: drawn(kernels=rng.choice((2.6, 2.8, 3.1, 3.3)), cluster=rng.randrange(140, 155) / 100, queue=1.2),
    small=lambda rng: drawn(kernels=2 ** rng.choice((3, 4)), cluster=2 ** rng.choice((1, 2)), queue=2),
    prompt=lambda p: (
        f"Three repairs made a job faster, and their factors multiply: kernels {p.kernels:g} times, cluster"
        f" {p.cluster:g} times, queue {p.queue:g} times. What share of the speed-up is the kernels', if shares must add"
        " up to 1 and must not depend on the order of the repairs: the share of the logarithm?"
    ),
    derive=lambda p: Derivation(
        value=shares.log_shares(_factors(p))["kernels"],
        formula="ln(factor) / ln(product of the factors)",
        substitution=f"log2({p.kernels:g}) / log2({p.kernels:g} × {p.cluster:g} × {p.queue:g})",
        source=f"{SHAPLEY}: of log(speed-up), every order gives the same",
    ),
    count=_count_log,
    slips=(
        Slip("of-the-sum", lambda p: _part(p, lambda factor: factor))
        | "You added factors. A repair of factor 1 would then have a share, and it does nothing.",
        Slip("of-the-gain", lambda p: (p.kernels - 1) / (math.prod(_factors(p).values()) - 1))
        | "You set what the kernels add alone against what all add. Such shares do not add up to 1.",
        Slip("of-the-excess", lambda p: _part(p, lambda factor: factor - 1))
        | "You took what each factor has above 1. Two small repairs then count less than one that does both.",
        Slip("the-others", lambda p: 1 - shares.log_shares(_factors(p))["kernels"])
        | "That is what the other two share.",
    ),
)

# --- both orders ---------------------------------------------------------------------------------


def _draw_order(rng: random.Random) -> Draw:
    return drawn(
        hours=rng.randrange(42, 82, 3),
        kernels=rng.randrange(250, 285, 5) / 100,
        cluster=rng.randrange(125, 146, 5) / 100,
    )


def _in_hours(p: Draw, order: tuple[str, ...]) -> float:
    factors = {name: getattr(p, name) for name in order}
    return shares.saved_in_order(factors, whole=p.hours)["kernels"]


def _mean_order(p: Draw) -> float:
    return (_in_hours(p, ("kernels", "cluster")) + _in_hours(p, ("cluster", "kernels"))) / 2


def _count_order(p: Draw) -> float:
    factors = {name: Fraction(str(getattr(p, name))) for name in ("kernels", "cluster")}
    return float(repair_orders.mean(factors, whole=Fraction(p.hours))["kernels"] * hour)


ORDER = Drill(
    key="story-mean-of-orders",
    taught=TAUGHT,
    title="First or last",
    unit="s",
    target_s=130,
    draw=_draw_order,
    small=_draw_order,
    prompt=lambda p: (
        f"A run took {p.hours} hours. Better kernels made it {p.kernels:g} times faster, a better exchange between the"
        f" GPUs {p.cluster:g} times; the factors multiply. How many hours do the kernels save, as the mean of"
        " what they save made first and made last?"
    ),
    derive=lambda p: Derivation(
        value=_mean_order(p) * hour,
        formula="(run + run / other factor) / 2 × (1 − 1 / factor)",
        substitution=f"({p.hours} + {p.hours} / {p.cluster:g}) / 2 × (1 − 1 / {p.kernels:g}) × 3600",
        source=SHAPLEY,
    ),
    count=_count_order,
    slips=(
        Slip("first", lambda p: _in_hours(p, ("kernels", "cluster")) * hour)
        | "That is made first. The exchange then has less left to save.",
        Slip("last", lambda p: _in_hours(p, ("cluster", "kernels")) * hour)
        | "That is made last. Had they come first, they would have saved more.",
        Slip("half-of-all", lambda p: p.hours * (1 - 1 / (p.kernels * p.cluster)) / 2 * hour)
        | "You halved what both save. The two repairs are not equally strong.",
        Slip("both", lambda p: p.hours * (1 - 1 / (p.kernels * p.cluster)) * hour) | "That is what both save together.",
    ),
)

# --- hours in money ------------------------------------------------------------------------------


def _draw_money(rng: random.Random) -> Draw:
    return drawn(
        gpus=rng.choice((24, 48, 64, 96)),
        hours=rng.randrange(40, 110, 5),
        kernels=rng.choice((1.7, 1.8, 1.9)),
        cluster=rng.choice((1.3, 1.4, 1.45)),
        price=rng.choice((2.2, 2.6, 2.95, 3.4)),
    )


def _before(p: Draw) -> float:
    return float(p.gpus * p.hours * p.price)


def _saved_dollars(p: Draw) -> float:
    saved = shares.saved_in_order({"kernels": p.kernels, "cluster": p.cluster}, whole=p.hours)
    return float(p.gpus * math.fsum(saved.values()) * p.price)


def _count_money(p: Draw) -> float:
    """Pay every GPU hour of the old run and of the new one."""
    price = Fraction(str(p.price))
    new_hours = p.hours / Fraction(str(p.kernels)) / Fraction(str(p.cluster))
    old = new = Fraction(0)
    for _gpu in range(p.gpus):
        old += sum((price for _hour in range(p.hours)), Fraction(0))
        new += price * new_hours
    return float(old - new)


MONEY = Drill(
    key="story-saved-dollars",
    taught=TAUGHT,
    title="What the hours are worth",
    unit="dollar",
    target_s=110,
    draw=_draw_money,
    small=_draw_money,
    prompt=lambda p: (
        f"A training run took {p.hours} hours on {p.gpus} GPUs, at {p.price} dollars per GPU and hour. Kernels make it"
        f" {p.kernels:g} times faster, and the exchange between the GPUs another {p.cluster:g} times. How many dollars"
        " does a run save?"
    ),
    derive=lambda p: Derivation(
        value=_saved_dollars(p),
        formula="GPUs × hours × (1 − 1 / product of the factors) × price",
        substitution=f"{p.gpus} × {p.hours} × (1 − 1 / ({p.kernels:g} × {p.cluster:g})) × {p.price}",
        source="a price per GPU and hour is paid for every GPU of the run; read from an offer, as in 2026",
    ),
    count=_count_money,
    slips=(
        Slip("what-it-costs-now", lambda p: _before(p) / (p.kernels * p.cluster))
        | "That is what the run costs now, not what it saves.",
        Slip("savings-added", lambda p: _before(p) * (2 - 1 / p.kernels - 1 / p.cluster))
        | "You added two savings of the old run. The second repair finds a shorter run.",
        Slip("factor-less-one", lambda p: _before(p) * (p.kernels * p.cluster - 1))
        | "Twice as fast saves half, not the whole. Divide by the factor first.",
        Slip("one-gpu", lambda p: _saved_dollars(p) / p.gpus) | "That is one GPU. All of them are rented.",
    ),
)

DRILLS = (LOG, ORDER, MONEY)
