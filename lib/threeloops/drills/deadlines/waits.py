"""Drills on tasks that share a processor: how much of it they take, how much a bound allows, how long one waits."""

import math
import random
from fractions import Fraction

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.searches import holds_up_to
from threeloops.driving import response_time as analysis
from threeloops.driving.response_time import Task
from threeloops.operations import vector_kernels
from threeloops.simulate.driving import task_schedule
from threeloops.simulate.driving.task_schedule import Periodic, Section
from threeloops.units import GB, ms, us

TAUGHT = Taught("driving", "Tails and schedules")
LIU = "Liu and Layland, Journal of the ACM 20(1), 1973, doi:10.1145/321738.321743"
JOSEPH = "Joseph and Pandya, The Computer Journal 29(5), 1986"
AUDSLEY = "Audsley, Burns, Richardson, Tindell and Wellings, Software Engineering Journal 8(5), 1993"
GEORGE = "George, Rivierre and Spuri, INRIA report RR-2966, 1996"
A_MOMENT = Fraction(1, 10**13)
RARELY = Fraction(99_999)  # a period that no play outlasts
ORIN = "jetson-agx-orin-64gb"


def _tasks(costs: tuple[int, ...], periods: tuple[int, ...]) -> list[Task]:
    return [Task(cost=cost, period=period) for cost, period in zip(costs, periods, strict=True)]


def _played(costs: tuple[int, ...], periods: tuple[int, ...], *, first: Fraction = Fraction(0)) -> list[Periodic]:
    return [
        Periodic(name=str(rank), cost=Fraction(cost), period=Fraction(period), first=first)
        for rank, (cost, period) in enumerate(zip(costs, periods, strict=True))
    ]


def _listed(costs: tuple[int, ...], periods: tuple[int, ...]) -> str:
    return ", ".join(f"{cost} ms every {period} ms" for cost, period in zip(costs, periods, strict=True))


# --- utilisation ---------------------------------------------------------------------------------


def _draw_load(rng: random.Random) -> Draw:
    periods = (rng.choice((10, 20)), rng.choice((25, 33, 40)), rng.choice((50, 100)))
    costs = (rng.randrange(2, 5), rng.randrange(6, 13), rng.randrange(9, 24))
    return drawn(costs=costs, periods=periods)


def _load(p: Draw) -> float:
    return float(analysis.total_utilisation(_tasks(p.costs, p.periods)))


def _count_load(p: Draw) -> float:
    """Play until all tasks stand as at the start, and add up when the processor worked."""
    until = math.lcm(*p.periods)
    slices = task_schedule.play(_played(p.costs, p.periods), until=until).slices
    return float(sum(one.end - one.start for one in slices) / until)


UTILISATION = Drill(
    key="deadlines-utilisation",
    taught=TAUGHT,
    title="How much of the processor is taken",
    unit="",
    target_s=60,
    apart=1.06,
    wanted=lambda p: _load(p) < 0.97,
    draw=_draw_load,
    small=_draw_load,
    prompt=lambda p: (
        f"Three periodic tasks share one core: {_listed(p.costs, p.periods)}. Which share of its time does the core"
        " work?"
    ),
    derive=lambda p: Derivation(
        value=_load(p),
        formula="sum of cost / period",
        substitution=" + ".join(f"{cost} / {period}" for cost, period in zip(p.costs, p.periods, strict=True)),
        source=f"{LIU}, section 4",
    ),
    count=_count_load,
    slips=(
        Slip("pooled", lambda p: sum(p.costs) / sum(p.periods))
        | "You divided all costs by all periods. Each task has a share of its own; the shares add up.",
        Slip("shortest-period", lambda p: sum(p.costs) / p.periods[0])
        | "You ran every task in every one of the shortest periods. The others come less often.",
        Slip("largest", lambda p: max(cost / period for cost, period in zip(p.costs, p.periods, strict=True)))
        | "That is the largest share of one task. The core works for all of them.",
        Slip("free", lambda p: 1 - _load(p)) | "That is the share of time in which the core is idle.",
    ),
)

# --- what the bound leaves -----------------------------------------------------------------------


def _draw_room(rng: random.Random) -> Draw:
    return drawn(
        costs=(rng.randrange(2, 5), rng.randrange(3, 9)),
        periods=(rng.choice((10, 20)), rng.choice((25, 30, 40))),
        period=rng.choice((60, 80, 100, 120)),
    )


def _room(p: Draw, bound: float) -> float:
    load = sum(cost / period for cost, period in zip(p.costs, p.periods, strict=True))
    return float((bound - load) * p.period * ms)


def _count_room(p: Draw) -> float:
    """Let three tasks have equal shares and grow until the worst periods no longer fit (the product of 1 + share
    reaches 2); three such shares, less what is taken.
    """
    share = holds_up_to(lambda share: (1 + share) * (1 + share) * (1 + share) < 2, high=1)
    return _room(p, share + share + share)


BOUND = Drill(
    key="deadlines-bound",
    taught=TAUGHT,
    title="A third task under the bound",
    unit="s",
    target_s=110,
    apart=1.06,
    wanted=lambda p: _room(p, math.log(2)) > p.period * ms / 10,
    draw=_draw_room,
    small=_draw_room,
    prompt=lambda p: (
        f"Two tasks run under rate-monotonic priorities: {_listed(p.costs, p.periods)}. A third one comes every"
        f" {p.period} ms; every deadline is the period. Which cost may it have at most, if Liu and Layland's bound"
        " alone shall prove that nothing is late?"
    ),
    derive=lambda p: Derivation(
        value=_room(p, analysis.utilisation_bound(tasks=3)),
        formula="(n (2^(1/n) − 1) − utilisation of the two) × period, n = 3",
        substitution=(
            f"(3 × (2**(1 / 3) − 1) − {p.costs[0]} / {p.periods[0]} − {p.costs[1]} / {p.periods[1]}) × {p.period} /"
            " 1000"
        ),
        source=f"{LIU}, theorem 5",
    ),
    count=_count_room,
    prerequisites=("deadlines-utilisation",),
    slips=(
        Slip("all", lambda p: _room(p, 1.0))
        | "You filled the core up to 1. Under fixed priorities the bound promises less.",
        Slip("two", lambda p: _room(p, analysis.utilisation_bound(tasks=2)))
        | "You took the bound for two tasks. With the new one there are more.",
        Slip("many", lambda p: _room(p, math.log(2)))
        | "You took the limit for very many tasks. For few of them the bound is higher.",
        Slip("alone", lambda p: analysis.utilisation_bound(tasks=3) * p.period * ms)
        | "You gave the new task the whole bound. The others have their share of it.",
    ),
)

# --- response of the third task ------------------------------------------------------------------


def _draw_response(rng: random.Random) -> Draw:
    return drawn(
        cost_ms=rng.randrange(9, 22),
        above_costs_ms=(rng.randrange(2, 6), rng.randrange(5, 11)),
        above_periods_ms=(rng.randrange(9, 15), rng.randrange(24, 36)),
        period_ms=100,
    )


def _response(p: Draw) -> float:
    own = Task(cost=p.cost_ms, period=p.period_ms)
    return float(analysis.response_time(own, above=_tasks(p.above_costs_ms, p.above_periods_ms)) * ms)


def _stretched(p: Draw) -> float:
    taken = sum(cost / period for cost, period in zip(p.above_costs_ms, p.above_periods_ms, strict=True))
    return float(p.cost_ms / (1 - taken) * ms)


def _whole_period(p: Draw) -> float:
    pairs = zip(p.above_costs_ms, p.above_periods_ms, strict=True)
    return float((p.cost_ms + sum(math.ceil(p.period_ms / period) * cost for cost, period in pairs)) * ms)


def _one_pass(p: Draw) -> float:
    """Interference counted over the own cost alone."""
    pairs = zip(p.above_costs_ms, p.above_periods_ms, strict=True)
    return float((p.cost_ms + sum(math.ceil(p.cost_ms / period) * cost for cost, period in pairs)) * ms)


def _each_once(p: Draw) -> float:
    return float((p.cost_ms + sum(p.above_costs_ms)) * ms)


def _count_response(p: Draw) -> float:
    tasks = _played((*p.above_costs_ms, p.cost_ms), (*p.above_periods_ms, p.period_ms))
    return float(task_schedule.play(tasks, until=p.period_ms).longest_response("2")) * ms


def _response_terms(p: Draw) -> str:
    window = round(_response(p) / ms)
    terms = [
        f"ceil({window} / {period}) × {cost}" for cost, period in zip(p.above_costs_ms, p.above_periods_ms, strict=True)
    ]
    return f"({p.cost_ms} + {' + '.join(terms)}) / 1000" if terms else f"{p.cost_ms} / 1000"


RESPONSE = Drill(
    key="deadlines-response",
    taught=TAUGHT,
    title="How long the third task takes",
    unit="s",
    target_s=150,
    apart=1.06,
    wanted=lambda p: _response(p) <= p.period_ms * ms * 9 / 10,
    draw=_draw_response,
    small=_draw_response,
    prompt=lambda p: (
        f"Two tasks of higher priority run on a core: {_listed(p.above_costs_ms, p.above_periods_ms)}. A third one"
        f" computes {p.cost_ms} ms every {p.period_ms} ms and can be preempted at any time. What is the longest time"
        " from its release to its end?"
    ),
    derive=lambda p: Derivation(
        value=_response(p),
        formula="R = cost + sum over tasks above of ceil(R / period) × cost, from the cost on until it stays",
        substitution=_response_terms(p),
        source=JOSEPH,
    ),
    count=_count_response,
    slips=(
        Slip("each-once", _each_once)
        | "You let each of the others run once. While this task waits, they are released again.",
        Slip("one-pass", _one_pass)
        | "You counted releases during its own cost only. While it is preempted, more of them come.",
        Slip("stretched", _stretched)
        | "That is the mean slowdown by the others' load. Released all together, they do worse than the mean.",
        Slip("whole-period", _whole_period)
        | "You counted what comes in the whole period. Once the task has finished, nothing delays it.",
    ),
    function=AsFunction(
        takes=("cost_ms", "above_costs_ms", "above_periods_ms"),
        limit={"above_costs_ms": (), "above_periods_ms": ()},
        limit_case="a task that has the core to itself",
    ),
)

# --- blocking by a copy, on a real part ----------------------------------------------------------

CAMERAS = ((1920, 1280), (2880, 1860), (3840, 2160))


def _draw_copy(rng: random.Random) -> Draw:
    width, height = rng.choice(CAMERAS)
    return drawn(
        frames=rng.randrange(5, 12),
        width=width,
        height=height,
        pixel_bytes=rng.choice((2, 3)),
        cost_us=rng.randrange(150, 950, 10),
        bytes_per_s=catalogued.part(ORIN)["memory_bytes_per_s"],
    )


def _copy_s(p: Draw) -> float:
    copy = vector_kernels.elementwise(
        elements=p.frames * p.width * p.height, flops_per_element=0, inputs=1, bytes_per_element=p.pixel_bytes
    )
    return float(copy.moved_bytes / p.bytes_per_s)


def _own_s(p: Draw) -> float:
    return float(p.cost_us * ms * ms)


def _count_copy(p: Draw) -> float:
    """The copy has taken its lock a moment before the controller is released; the holder has the ceiling."""
    moved = Fraction(0)
    for _frame in range(p.frames):
        moved += 2 * Fraction(p.width * p.height * p.pixel_bytes) / Fraction(p.bytes_per_s)
    own = p.cost_us * Fraction(str(us))
    section = Section(after=Fraction(0), length=own, lock="engine")
    control = Periodic(name="control", cost=own, period=Fraction(1), first=A_MOMENT, section=section)
    held = Section(after=Fraction(0), length=moved, lock="engine")
    copy = Periodic(name="copy", cost=moved, period=Fraction(1), section=held)
    return float(task_schedule.play([control, copy], until=1, protocol="ceiling").longest_response("control"))


BLOCKING = Drill(
    key="deadlines-blocking",
    taught=TAUGHT,
    title="Behind another stream's copy",
    unit="s",
    target_s=120,
    apart=1.06,
    draw=_draw_copy,
    small=_draw_copy,
    prompt=lambda p: (
        f"On a Jetson AGX Orin 64GB ({p.bytes_per_s / GB:g} GB/s of memory) a logger of low priority copies {p.frames}"
        f" frames of {p.width} × {p.height} pixels, {p.pixel_bytes} bytes each, from one place in memory to another:"
        " one copy, at the full rate, under a lock with a priority ceiling. The controller has the highest priority,"
        f" needs the same lock, and computes {p.cost_us} µs. What is its longest response time?"
    ),
    derive=lambda p: Derivation(
        value=float(analysis.response_time(Task(cost=_own_s(p), period=RARELY), above=[], blocking=_copy_s(p))),
        formula="blocking + cost; blocking = 2 × frames × bytes of a frame / bandwidth (each byte is read and written)",
        substitution=(
            f"2 × {p.frames} × {p.width} × {p.height} × {p.pixel_bytes} / {p.bytes_per_s / GB:g}e9 + {p.cost_us}e-6"
        ),
        source=f"{AUDSLEY} (blocking); bandwidth: NVIDIA Jetson AGX Orin Series data sheet DS-10662-001, 2024",
    ),
    count=_count_copy,
    prerequisites=("deadlines-response",),
    slips=(
        Slip("priority", _own_s) | "You let the highest priority pass at once. Who holds the lock finishes first.",
        Slip("wait-only", _copy_s)
        | "That is how long the controller waits. Its response ends when it has computed, too.",
        Slip("read-only", lambda p: _copy_s(p) / 2 + _own_s(p))
        | "You moved each byte over the memory's wires once. A copy reads it and writes it.",
        Slip("one-frame", lambda p: _copy_s(p) / p.frames + _own_s(p))
        | "You let the controller in after one frame. The lock is held for the whole copy.",
    ),
)

# --- non-preemptive ------------------------------------------------------------------------------


def _draw_kernels(rng: random.Random) -> Draw:
    return drawn(
        cost_ms=rng.randrange(4, 16),
        period_ms=100,
        above_cost_ms=rng.randrange(2, 8),
        above_period_ms=rng.randrange(16, 31),
        below_ms=(rng.randrange(8, 18), rng.randrange(19, 41)),
    )


def _kernel_response(p: Draw, blocking: float, *, preemptive: bool = False) -> float:
    own, above = Task(cost=p.cost_ms, period=p.period_ms), [Task(cost=p.above_cost_ms, period=p.above_period_ms)]
    answer = analysis.response_time if preemptive else analysis.non_preemptive_response_time
    return float(answer(own, above=above, blocking=blocking) * ms)


def _decided(p: Draw) -> bool:
    """Whether the kernel above comes twice, and not in the moment of the start: nobody should have to decide that."""
    longest = max(p.below_ms)
    moment_less = _kernel_response(p, longest - float(A_MOMENT) / ms)
    twice = longest >= p.above_period_ms - p.above_cost_ms
    return bool(twice and moment_less >= _kernel_response(p, longest) - ms / 2)


def _count_kernels(p: Draw) -> float:
    """The longest kernel below has begun a moment before the others come; a second one waits as well."""
    tasks = _played((p.above_cost_ms, p.cost_ms), (p.above_period_ms, p.period_ms), first=A_MOMENT)
    below = [
        Periodic(name=f"below {cost}", cost=Fraction(cost), period=RARELY, first=first)
        for cost, first in zip(sorted(p.below_ms), (A_MOMENT, Fraction(0)), strict=True)
    ]
    played = task_schedule.play([*tasks, *below], until=10 * p.period_ms, preemptive=False)
    return float(played.longest_response("1")) * ms


KERNELS = Drill(
    key="deadlines-non-preemptive",
    taught=TAUGHT,
    title="Kernels that cannot be interrupted",
    unit="s",
    target_s=150,
    apart=1.06,
    wanted=_decided,
    draw=_draw_kernels,
    small=_draw_kernels,
    prompt=lambda p: (
        "Four kinds of kernel share an accelerator that finishes each kernel before it begins the next, and then takes"
        f" the most urgent one that waits. First in priority: {p.above_cost_ms} ms every {p.above_period_ms} ms."
        f" Second: {p.cost_ms} ms every {p.period_ms} ms. The two others take {p.below_ms[0]} and {p.below_ms[1]} ms"
        " and come rarely. What is the longest time from the release of a kernel of the second kind to its end?"
    ),
    derive=lambda p: Derivation(
        value=_kernel_response(p, max(p.below_ms)),
        formula="start w = longest kernel below + (floor(w / period above) + 1) × cost above; response = w + cost",
        substitution=_kernel_terms(p),
        source=GEORGE,
    ),
    count=_count_kernels,
    prerequisites=("deadlines-response",),
    slips=(
        Slip("no-blocking", lambda p: _kernel_response(p, 0))
        | "You let it wait for more urgent kernels only. One that is less urgent may have just begun.",
        Slip("all-below", lambda p: _kernel_response(p, sum(p.below_ms)))
        | "You waited for both kinds below. Only one can have begun; the other one comes after this kernel.",
        Slip("above-once", lambda p: (max(p.below_ms) + p.above_cost_ms + p.cost_ms) * ms)
        | "You let the most urgent kind run once. During the wait it is released again.",
        Slip("no-above", lambda p: (max(p.below_ms) + p.cost_ms) * ms)
        | "You forgot the kind that is more urgent. It goes first whenever it waits, too.",
    ),
)


def _kernel_terms(p: Draw) -> str:
    start = round(_kernel_response(p, max(p.below_ms)) / ms) - p.cost_ms
    return f"({max(p.below_ms)} + (floor({start} / {p.above_period_ms}) + 1) × {p.above_cost_ms} + {p.cost_ms}) / 1000"


DRILLS = (UTILISATION, BOUND, RESPONSE, BLOCKING, KERNELS)
