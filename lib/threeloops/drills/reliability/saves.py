"""Drills on saves: how often, and what they take."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.searches import holds_up_to
from threeloops.training_loop.run import reliability
from threeloops.units import GB, billion, day, fmt_seconds, minute

TAUGHT = Taught("training", "Failure as routine")

YEAR = 365 * day
SOURCE_YOUNG = "Young, CACM 17(9), 1974, doi:10.1145/361147.361115"
SOURCE_STATES = "Rajbhandari et al., ZeRO, 2019, arXiv:1910.02054, section 3.1"

# --- how often to save ---------------------------------------------------------------------------


def _derive_young(p: Draw) -> Derivation:
    system = reliability.system_mtbf_s(part_mtbf_s=p.gpu_years * YEAR, num_parts=p.gpus)
    return Derivation(
        value=reliability.young_interval_s(save_s=p.save_s, mtbf_s=system),
        formula="√(2 × time to save × time between stops of the whole)",
        substitution=f"(2 × {p.save_s} × {p.gpu_years} × {YEAR} / {p.gpus}) ** 0.5",
        source=SOURCE_YOUNG,
    )


def _count_young(p: Draw) -> float:
    """Lengthen the interval until repeating work costs as much per second as saving does: beyond that point it only
    gets worse.
    """
    stops_per_s = sum(1 / (p.gpu_years * YEAR) for _ in range(p.gpus))
    return holds_up_to(lambda interval: p.save_s / interval > stops_per_s * interval / 2, high=1e9)


YOUNG = Drill(
    key="failure-save-interval",
    taught=TAUGHT,
    title="How often to save",
    unit="s",
    target_s=120,
    draw=lambda rng: drawn(
        gpus=rng.randrange(640, 16_000, 64), gpu_years=rng.randrange(4, 13), save_s=rng.randrange(15, 240)
    ),
    small=lambda rng: drawn(gpus=rng.randrange(10, 60), gpu_years=rng.randrange(4, 13), save_s=rng.randrange(15, 240)),
    prompt=lambda p: (
        f"A run on {p.gpus:,} GPUs stops when any GPU fails, and a GPU fails every {p.gpu_years} years of 365 days. A"
        f" save stops training for {p.save_s} s. By Young's rule, how much time should lie between two saves?"
    ),
    derive=_derive_young,
    count=_count_young,
    prerequisites=("failure-two-kinds-of-parts",),
    slips=(
        Slip("no-two", lambda p: _derive_young(p).value / 2**0.5)
        | "On average half an interval is lost, not a whole one. Where does that show?",
        Slip("two-outside", lambda p: _derive_young(p).value * 2**0.5) | "The factor of two stands under the root.",
        Slip("half-interval", lambda p: _derive_young(p).value / 2)
        | "That is what a failure loses on average. The question is the interval.",
        Slip("one-gpu", lambda p: _derive_young(p).value * p.gpus**0.5)
        | "You saved as often as a single GPU needs. How often does the whole stop?",
    ),
)

# --- the share of the time that saving takes -----------------------------------------------------

STATE_BYTES = 14  # bf16 weights and fp32 master copy and moments; gradients need not be saved


def _share(p: Draw, *, bytes_each: float, writers: int) -> float:
    save_s = reliability.sharded_save_s(
        num_parameters=p.parameters, state_bytes=bytes_each, nodes=writers, write_bytes_per_s=p.bytes_per_s
    )
    return reliability.saving_share(interval_s=p.interval_s, save_s=save_s)


def _saving(p: Draw) -> float:
    """The share of the whole time that goes into saving."""
    return _share(p, bytes_each=STATE_BYTES, writers=p.nodes)


def _small_saving(rng: random.Random) -> Draw:
    nodes = rng.choice((3, 5))
    return drawn(
        parameters=nodes * rng.randrange(20, 60),
        nodes=nodes,
        bytes_per_s=float(rng.choice((2, 7))),
        interval_s=rng.randrange(200, 900),
    )


def _derive_saving(p: Draw) -> Derivation:
    save = f"{p.parameters} × {STATE_BYTES} / ({p.nodes} × {p.bytes_per_s:.15g})"
    return Derivation(
        value=_saving(p),
        formula="save / (interval + save), save = parameters × 14 bytes / (nodes × bandwidth)",
        substitution=f"({save}) / ({p.interval_s} + {save})",
        source=SOURCE_STATES,
    )


def _count_saving(p: Draw) -> float:
    """Every node writes its parameters tensor by tensor (weight, master copy, two moments); then ten periods are
    played.
    """
    slowest = 0.0
    for _ in range(p.nodes):
        written = sum(size for _ in range(p.parameters // p.nodes) for size in (2, 4, 4, 4))
        slowest = max(slowest, written / p.bytes_per_s)
    clock = saving = 0.0
    for _ in range(10):
        clock += p.interval_s + slowest
        saving += slowest
    return saving / clock


SAVING = Drill(
    key="failure-saving-share",
    taught=TAUGHT,
    title="What saving takes",
    unit="",
    target_s=150,
    apart=1.06,
    wanted=lambda p: 0.06 < _saving(p) < 0.5,
    draw=lambda rng: drawn(
        parameters=rng.randrange(30, 420, 5) * billion,
        nodes=rng.randrange(6, 70),
        bytes_per_s=rng.randrange(2, 14) / 10 * GB,
        interval_s=rng.randrange(8, 60) * minute,
    ),
    small=_small_saving,
    prompt=lambda p: (
        f"A model of {p.parameters / billion:g} billion parameters trains with bf16 weights, bf16 gradients and Adam"
        f" (fp32 master weights and two fp32 moments). After every {fmt_seconds(p.interval_s)} of training it stops and"
        f" saves weights, master weights and moments, but no gradients: {p.nodes} nodes write equal shares at the same"
        f" time, {p.bytes_per_s / GB:g} GB/s each. Which share of the whole time goes into saving?"
    ),
    derive=_derive_saving,
    count=_count_saving,
    slips=(
        Slip("weights-only", lambda p: _share(p, bytes_each=2, writers=p.nodes))
        | "You saved the weights. What does the optimiser need to go on?",
        Slip("with-gradients", lambda p: _share(p, bytes_each=16, writers=p.nodes))
        | "You saved gradients as well. The next step makes its own.",
        Slip("one-writer", lambda p: _share(p, bytes_each=14, writers=1))
        | "You sent everything through one node. All of them write at the same time.",
        Slip("share-of-training", lambda p: _saving(p) / (1 - _saving(p)))
        | "You divided by the time of training alone. The whole time holds the save as well.",
    ),
)

DRILLS = (YOUNG, SAVING)
