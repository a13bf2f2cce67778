"""Drills on failures: how often a system of many parts stops."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.training_loop.run import reliability
from threeloops.units import day

TAUGHT = Taught("training", "Failure as routine")

YEAR = 365 * day
SOURCE_RATES = (
    "Feller, An Introduction to Probability Theory and Its Applications, volume 2, 1971, section I.3 (rates add up)"
)
SOURCE_LLAMA = "Llama Team, The Llama 3 Herd of Models, 2024, arXiv:2407.21783, section 3.3.4 (the same division)"

# --- parts of two kinds --------------------------------------------------------------------------


def _node_rate(p: Draw) -> float:
    """Failures of one node per year."""
    return float(p.gpus / p.gpu_years + 1 / p.host_years)


def _derive_system(p: Draw) -> Derivation:
    gpus = reliability.system_mtbf_s(part_mtbf_s=p.gpu_years * YEAR, num_parts=p.nodes * p.gpus)
    hosts = reliability.system_mtbf_s(part_mtbf_s=p.host_years * YEAR, num_parts=p.nodes)
    return Derivation(
        value=1 / (1 / gpus + 1 / hosts),
        formula="1 / (nodes × (GPUs per node / GPU's time + 1 / host's time))",
        substitution=f"{YEAR} / ({p.nodes} × ({p.gpus} / {p.gpu_years} + 1 / {p.host_years}))",
        source=SOURCE_RATES,
    )


def _count_system(p: Draw) -> float:
    """Every part fails punctually; all failures of a period in which each part fails a whole number of times."""
    years = p.gpu_years * p.host_years
    failures = 0
    for _ in range(p.nodes):
        lifetimes = [p.gpu_years] * p.gpus + [p.host_years]
        failures += sum(1 for lifetime in lifetimes for year in range(1, years + 1) if year % lifetime == 0)
    return float(years * YEAR / failures)


SYSTEM = Drill(
    key="failure-two-kinds-of-parts",
    taught=TAUGHT,
    title="A machine of parts that fail",
    unit="s",
    target_s=120,
    apart=1.06,
    draw=lambda rng: drawn(
        nodes=rng.randrange(130, 900, 10),
        gpus=rng.choice((4, 6)),
        gpu_years=rng.randrange(18, 60),
        host_years=rng.randrange(4, 14),
    ),
    small=lambda rng: drawn(
        nodes=rng.randrange(2, 5),
        gpus=rng.choice((3, 4, 6)),
        gpu_years=rng.choice((20, 35)),
        host_years=rng.choice((6, 9)),
    ),
    prompt=lambda p: (
        f"A run uses {p.nodes} nodes of {p.gpus} GPUs. A GPU fails every {p.gpu_years} years on average; everything"
        f" else in a node, taken together, every {p.host_years} years. Any failure stops the run. How much time lies"
        " between two stops on average? (A year has 365 days.)"
    ),
    derive=_derive_system,
    count=_count_system,
    slips=(
        Slip("gpus-only", lambda p: p.gpu_years * YEAR / (p.nodes * p.gpus))
        | "You counted failures of GPUs only. What else in a node can stop the run?",
        Slip("hosts-only", lambda p: p.host_years * YEAR / p.nodes)
        | "You let no GPU fail. There are several in every node.",
        Slip("one-node", lambda p: YEAR / _node_rate(p)) | "That is one node by itself. Every node can stop the run.",
        Slip("one-gpu-per-node", lambda p: YEAR / (p.nodes * (1 / p.gpu_years + 1 / p.host_years)))
        | "You put one GPU into each node. Read again how many it holds.",
    ),
)

# --- the same machines, more of them -------------------------------------------------------------


def _draw_larger(rng: random.Random) -> Draw:
    gpus = rng.randrange(512, 6000, 128)
    return drawn(
        gpus=gpus,
        days=rng.randrange(11, 70),
        stops=rng.randrange(23, 160),
        target=round(gpus * rng.choice((1.5, 2.2, 3.1, 4.4, 5.7)) / 64) * 64,
    )


def _small_larger(rng: random.Random) -> Draw:
    gpus, hours, stops = rng.choice((4, 6)), rng.choice((3, 5)), rng.choice((2, 7))
    return drawn(
        gpus=gpus * stops,
        days=hours,
        stops=stops,
        target=gpus * hours // rng.choice((1, 3)) if hours == 3 else gpus * 5,
    )


def _derive_larger(p: Draw) -> Derivation:
    each = reliability.part_mtbf_s(observed_s=p.days * day, num_parts=p.gpus, failures=p.stops)
    return Derivation(
        value=reliability.system_mtbf_s(part_mtbf_s=each, num_parts=p.target),
        formula="observed time × GPUs / stops / GPUs of the larger run",
        substitution=f"{p.days} × {day} × {p.gpus} / {p.stops} / {p.target}",
        source=SOURCE_LLAMA,
    )


def _count_larger(p: Draw) -> float:
    """Deal the GPU-days of the first run to its stops, one by one; then let the larger run use up one stop's share, a
    day at a time.
    """
    shares = [0] * p.stops
    for number in range(p.gpus * p.days):
        shares[number % p.stops] += 1
    days, left = 0.0, float(shares[0])
    while left > 0:
        used = min(p.target, left)
        days, left = days + used / p.target, left - used
    return days * day


LARGER = Drill(
    key="failure-larger-run",
    taught=TAUGHT,
    title="The same failures on a larger machine",
    unit="s",
    target_s=90,
    draw=_draw_larger,
    small=_small_larger,
    prompt=lambda p: (
        f"A run on {p.gpus} GPUs was stopped {p.stops} times in {p.days} days by failures of its hardware. The next run"
        f" uses {p.target} GPUs of the same kind, in the same kind of nodes. How much time will lie between two stops"
        " on average?"
    ),
    derive=_derive_larger,
    count=_count_larger,
    slips=(
        Slip("same-machine", lambda p: p.days * day / p.stops)
        | "That is the time between the stops of the first run. The next one has more parts.",
        Slip("longer-with-more", lambda p: p.days * day / p.stops * p.target / p.gpus)
        | "You let a larger machine fail less often. More parts mean more that can fail.",
        Slip("one-gpu", lambda p: p.days * day * p.gpus / p.stops)
        | "That is the time between failures of a single GPU.",
        Slip("divided-twice", lambda p: p.days * day / p.stops / p.target)
        | "You divided by the new number of GPUs, and forgot how many there were before.",
    ),
)

DRILLS = (SYSTEM, LARGER)
