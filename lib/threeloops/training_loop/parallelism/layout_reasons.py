"""Layout reasons: in words and numbers, why one layout is slower than another, and why a layout was not planned at
all.
"""

from threeloops.training_loop.memory.fit import RankMemory
from threeloops.training_loop.parallelism.layout_rules import Rules, refusal
from threeloops.training_loop.parallelism.layouts import Cluster, Job, Layout
from threeloops.training_loop.parallelism.planner import Planned, fullest_rank
from threeloops.units import fmt_bytes, fmt_percent, fmt_seconds

_TELLING = 0.1  # a cause is named if it makes up this share of the difference between two steps


def differences(loser: Planned, winner: Planned) -> dict[str, float]:
    """What a layout spends more than another, in seconds by cause, the dearest first; negative where it saves. The
    sum is the difference of the steps.
    """
    more = {name: seconds - winner.step.parts[name] for name, seconds in loser.step.parts.items()}
    return dict(sorted(more.items(), key=lambda item: -abs(item[1])))


def why_slower(loser: Planned, winner: Planned) -> str:
    """One sentence: by how much, and where the time goes.

    Raises:   ValueError if the loser is not slower
    """
    lost_s = loser.step.total_s - winner.step.total_s
    if lost_s < 0:
        raise ValueError(
            f"{loser.layout} is not slower than {winner.layout}: {fmt_seconds(loser.step.total_s)} against"
            f" {fmt_seconds(winner.step.total_s)}"
        )
    if lost_s == 0:
        return f"[{loser.layout}] is exactly as fast as [{winner.layout}]."
    share = fmt_percent(lost_s / winner.step.total_s)
    return (
        f"[{loser.layout}] loses {fmt_seconds(lost_s)} a step ({share}) to [{winner.layout}]:"
        f" {telling_differences(loser, winner)}."
    )


def telling_differences(loser: Planned, winner: Planned) -> str:
    """The causes that make up a tenth or more of the difference, dearer ones first, in words."""
    lost_s = loser.step.total_s - winner.step.total_s
    telling = [
        (name, seconds) for name, seconds in differences(loser, winner).items() if abs(seconds) >= _TELLING * lost_s
    ]
    dearer = [f"{fmt_seconds(seconds)} more of {name}" for name, seconds in telling if seconds > 0]
    saved = [f"{fmt_seconds(-seconds)} less of {name}" for name, seconds in telling if seconds < 0]
    return _and(dearer) + (f", against {_and(saved)}" if saved else "")


def why_not(layout: Layout, *, job: Job, cluster: Cluster, rules: Rules) -> str:
    """One sentence that says why a layout was cut, or an empty string for one that is legal and fits."""
    broken = refusal(layout, job=job, cluster=cluster, rules=rules)
    if broken is not None:
        return f"[{layout}] is not legal: {broken.sentence}."
    memory = fullest_rank(layout, job=job)
    if memory.total_bytes <= cluster.usable_bytes:
        return ""
    return (
        f"[{layout}] does not fit: stage {memory.stage} needs {fmt_bytes(memory.total_bytes, base=2)} of"
        f" {fmt_bytes(cluster.usable_bytes, base=2)}, most of it {_largest_part(memory)}."
    )


def _largest_part(memory: RankMemory) -> str:
    parts = {
        "weights": memory.states.weights_bytes,
        "gradients": memory.states.gradients_bytes,
        "optimiser state": memory.states.optimiser_bytes,
        f"activations of {memory.in_flight:g} micro-batches in flight": memory.activations_bytes,
        "weights gathered from their shards": memory.gathered_bytes,
    }
    name = max(parts, key=lambda part: parts[part])
    return f"{name} ({fmt_bytes(parts[name], base=2)})"


def _and(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
