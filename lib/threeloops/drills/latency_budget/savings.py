"""Drills on what a change of the stages saves: a whole table of them, an engine for the networks only, an encoder
shared or apart, a head that is sometimes left out.
"""

import random
from fractions import Fraction
from typing import Any

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.driving import latency_budget, perception_cost
from threeloops.simulate.driving import perception_frames, vehicle
from threeloops.units import GFLOP, ms

TAUGHT = Taught("driving", "Making it fast")
SHARED = "Caruana, Multitask Learning, 1997, doi:10.1023/A:1007379606734 (one trunk, several heads)"
AMDAHL = "Amdahl, AFIPS Spring Joint Computer Conference, 1967, doi:10.1145/1465482.1465560"


def _through(stages_ms: list[float]) -> Fraction:
    """Milliseconds that one frame takes through stages one after the other."""
    stages = [Fraction(str(stage)) for stage in stages_ms]
    ((_, finished),) = vehicle.frames_through(stages, period=sum(stages, Fraction(1)), frames=1)
    return finished


# --- a stage table -------------------------------------------------------------------------------

NAMES = ("decoding", "encoder", "bird's-eye view", "heads", "tracking", "planning")


def _draw_table(rng: random.Random) -> Draw:
    before = [rng.randrange(5, 8), rng.randrange(22, 29), rng.randrange(9, 13), 6, 4, rng.randrange(11, 16)]
    cut = [rng.randrange(2, 4), rng.randrange(9, 14), rng.randrange(2, 4), 1, 0, rng.randrange(1, 4)]
    return drawn(before=before, after=[old - less for old, less in zip(before, cut, strict=True)])


def _mean_of_savings(p: Draw) -> float:
    return float(sum(1 - new / old for old, new in zip(p.before, p.after, strict=True)) / len(p.before))


TABLE = Drill(
    key="latency-table-saving",
    taught=TAUGHT,
    title="What a table of stages saves",
    unit="",
    target_s=75,
    apart=1.06,
    draw=_draw_table,
    small=_draw_table,
    prompt=lambda p: (
        "The stages of a chain, one after the other, before and after a round of work: "
        + ", ".join(f"{name} {old} → {new} ms" for name, old, new in zip(NAMES, p.before, p.after, strict=True))
        + ". What share of the chain's latency is saved?"
    ),
    derive=lambda p: Derivation(
        value=perception_cost.saved_share(before=p.before, after=p.after),
        formula="1 − sum after / sum before",
        substitution=f"1 − ({' + '.join(map(str, p.after))}) / ({' + '.join(map(str, p.before))})",
        source=AMDAHL,
    ),
    count=lambda p: float((_through(p.before) - _through(p.after)) / _through(p.before)),
    slips=(
        Slip("what-is-left", lambda p: sum(p.after) / sum(p.before)) | "That share is still there.",
        Slip("over-the-new", lambda p: sum(p.before) / sum(p.after) - 1)
        | "You divided the saving by the new latency. A share saved is a share of what there was.",
        Slip("mean-of-shares", _mean_of_savings)
        | "You averaged the stages' own savings. A long stage weighs more than a short one.",
        Slip("best-stage", lambda p: 1 - p.after[1] / p.before[1])
        | "That is the encoder's own saving. The other stages are part of the chain, too.",
    ),
)

# --- an engine for the networks only -------------------------------------------------------------


def _draw_engine(rng: random.Random) -> Draw:
    return drawn(
        networks=[rng.randrange(14, 19), rng.randrange(7, 10), rng.randrange(4, 7)],
        others=[rng.randrange(5, 8), rng.randrange(9, 13)],
        factor=rng.choice((2.0, 2.2, 2.4, 2.6)),
    )


def _with_engine(p: Draw) -> float:
    networks = [stage * ms / p.factor for stage in p.networks]
    return latency_budget.pipeline_latency_s([*networks, *(stage * ms for stage in p.others)])


ENGINE = Drill(
    key="latency-engine-for-networks",
    taught=TAUGHT,
    title="An engine for the networks, and nothing else",
    unit="s",
    target_s=75,
    apart=1.06,
    draw=_draw_engine,
    small=_draw_engine,
    prompt=lambda p: (
        f"A chain's stages run one after the other: decoding {p.others[0]} ms, encoder {p.networks[0]} ms, view"
        f" transform {p.networks[1]} ms, heads {p.networks[2]} ms, planning {p.others[1]} ms. An inference engine runs"
        f" encoder, view transform and heads {p.factor:g} times faster; decoding and planning are plain code and stay."
        " What is the chain's latency now?"
    ),
    derive=lambda p: Derivation(
        value=_with_engine(p),
        formula="networks / factor + the others",
        substitution=(f"(({' + '.join(map(str, p.networks))}) / {p.factor} + {' + '.join(map(str, p.others))}) / 1000"),
        source=AMDAHL,
    ),
    count=lambda p: float(
        _through([*p.others]) * Fraction(1, 1000)
        + sum((Fraction(1, 1000) / Fraction(str(p.factor)) for stage in p.networks for _ in range(stage)), Fraction(0))
    ),
    slips=(
        Slip("whole-chain", lambda p: (sum(p.networks) + sum(p.others)) * ms / p.factor)
        | "You made the whole chain faster. The engine runs the networks only.",
        Slip("encoder-only", lambda p: (p.networks[0] / p.factor + sum(p.networks[1:]) + sum(p.others)) * ms)
        | "You left two of the networks as they were. The engine runs all three.",
        Slip("networks-alone", lambda p: sum(p.networks) * ms / p.factor)
        | "That is the networks' own time. The plain code still has to run.",
        Slip("saving", lambda p: sum(p.networks) * ms * (1 - 1 / p.factor))
        | "That is how much is saved, not how much is left.",
        Slip("before", lambda p: (sum(p.networks) + sum(p.others)) * ms) | "That is the chain as it was.",
    ),
)

# --- encoders shared or apart --------------------------------------------------------------------


def _flops(p: Draw, **changes: float) -> float:
    values: dict[str, Any] = {
        "cameras": p.cameras,
        "encoders": p.tasks,
        "image_flops": p.image * GFLOP,
        "heads_flops": p.heads * GFLOP,
    }
    return perception_cost.perception_flops(**(values | changes))


def _saved(p: Draw) -> float:
    return perception_cost.saved_share(before=[_flops(p)], after=[_flops(p, encoders=1)])


def _count_shared(p: Draw) -> float:
    ways = [
        perception_frames.flops_of_a_frame(
            cameras=p.cameras,
            tasks=p.tasks,
            shared=shared,
            image_flops=int(p.image),
            head_flops=[int(p.heads) // p.tasks] * p.tasks,
        )
        for shared in (False, True)
    ]
    return float(1 - Fraction(ways[1], ways[0]))


SHARE = Drill(
    key="latency-shared-encoder",
    taught=TAUGHT,
    title="One encoder for all tasks",
    unit="",
    target_s=90,
    apart=1.06,
    draw=lambda rng: drawn(
        cameras=rng.choice((5, 6, 7)),
        tasks=rng.choice((3, 4)),
        image=rng.randrange(60, 120) / 10,
        heads=rng.randrange(30, 60) / 1,
    ),
    small=lambda rng: drawn(
        cameras=rng.randrange(1, 4), tasks=rng.choice((2, 3)), image=rng.randrange(2, 9), heads=6.0
    ),
    prompt=lambda p: (
        f"{p.cameras} cameras, {p.tasks} tasks. An encoder costs {p.image:g} GFLOP a picture; the heads of all tasks"
        f" together cost {p.heads:g} GFLOP a frame, whichever encoder they read. Today every task runs an encoder of"
        " its own on every camera. What share of all FLOPs, heads included, does one shared encoder save?"
    ),
    derive=lambda p: Derivation(
        value=_saved(p),
        formula="1 − (cameras × image + heads) / (tasks × cameras × image + heads)",
        substitution=(f"1 − ({p.cameras} × {p.image} + {p.heads}) / ({p.tasks} × {p.cameras} × {p.image} + {p.heads})"),
        source=SHARED,
    ),
    count=_count_shared,
    slips=(
        Slip("encoders-only", lambda p: 1 - 1 / p.tasks)
        | "That is the encoders' own saving. The heads are paid on both sides.",
        Slip("heads-on-one-side", lambda p: 1 - _flops(p, encoders=1) / _flops(p, heads_flops=0))
        | "You counted the heads for the shared encoder only. Compare the same scope on both sides.",
        Slip("one-camera", lambda p: 1 - _flops(p, encoders=1, cameras=1) / _flops(p, cameras=1))
        | "You encoded the picture of one camera. Heads run once a frame, encoders once for each camera.",
        Slip("what-is-left", lambda p: 1 - _saved(p)) | "That share is still computed.",
    ),
)

# --- heads by driving mode -----------------------------------------------------------------------


def _draw_heads(rng: random.Random) -> Draw:
    return drawn(chain=rng.randrange(30, 46), head=rng.randrange(10, 15), percent=rng.choice((15, 20, 25, 30)))


def _mean(p: Draw, **changes: float) -> float:
    values = {"always_s": (p.chain - p.head) * ms, "sometimes_s": p.head * ms, "share": p.percent / 100}
    return perception_cost.mean_frame_s(**(values | changes))


def _count_heads(p: Draw) -> float:
    times = perception_frames.seconds_of_frames(
        always=Fraction(p.chain - p.head, 1000),
        sometimes=Fraction(p.head, 1000),
        needed=[frame < p.percent for frame in range(100)],
    )
    return float(sum(times, Fraction(0)) / 100)


HEADS = Drill(
    key="latency-heads-by-mode",
    taught=TAUGHT,
    title="A head that only parking needs",
    unit="s",
    target_s=75,
    apart=1.06,
    draw=_draw_heads,
    small=_draw_heads,
    prompt=lambda p: (
        f"A chain takes {p.chain} ms with all its heads. One of them, {p.head} ms of it, is needed for parking only:"
        f" in {p.percent} % of the frames. It is left out of the others. What is the mean latency of a frame?"
    ),
    derive=lambda p: Derivation(
        value=_mean(p),
        formula="the others + share × head; the longest frame stays as it was",
        substitution=f"({p.chain} − {p.head} + {p.percent} / 100 × {p.head}) / 1000",
        source="the mean of two kinds of frame; Kopetz, Real-Time Systems, 2nd ed., 2011, on worst-case times",
    ),
    count=_count_heads,
    slips=(
        Slip("longest", lambda p: p.chain * ms)
        | "That is the longest frame. A deadline asks for it; here the mean is asked for.",
        Slip("never", lambda p: (p.chain - p.head) * ms) | "You never ran the head. Parking needs it.",
        Slip("other-share", lambda p: _mean(p, share=1 - p.percent / 100))
        | "You left the head out where it is needed, and ran it where it is not.",
        Slip("whole-chain", lambda p: p.chain * ms * p.percent / 100)
        | "You left out the whole chain. Only the head is skipped.",
    ),
)

DRILLS = (TABLE, ENGINE, SHARE, HEADS)
