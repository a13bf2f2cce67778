"""Count: popular experts get further copies one by one, all copies get a GPU, and tokens are dealt out over them.

Copies go to whichever expert has the busiest ones; GPUs fill up from the heaviest copy on. That is the way of
DeepSeek-AI, EPLB, 2025, told anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from threeloops import checks
from threeloops.simulate.training_loop.expert_routing import router


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Which expert lies in each slot of each GPU."""

    gpus: tuple[tuple[int, ...], ...]

    def loads(self, tokens: Sequence[float]) -> list[float]:
        """Load of each GPU when the tokens of every expert are dealt out over its copies, one after the other."""
        copies = [0] * len(tokens)
        for expert in (expert for gpu in self.gpus for expert in gpu):
            copies[expert] += 1
        return [sum(tokens[expert] / copies[expert] for expert in gpu) for gpu in self.gpus]


def drawn_loads(*, num_experts: int, top_k: int, skew: float, tokens: int, seed: int) -> list[int]:
    """Tokens of each expert of a router whose experts differ in popularity by that skew.

    >>> sum(drawn_loads(num_experts=8, top_k=2, skew=1.0, tokens=100, seed=1))
    200
    """
    chooser = router(num_experts=num_experts, top_k=top_k, skew=skew, seed=seed)
    choices = chooser.choices(np.random.default_rng(seed), tokens=tokens)
    return [int(load) for load in np.bincount(choices.ravel(), minlength=num_experts)]


def copied(loads: Sequence[float], *, slots: int) -> list[int]:
    """Copies of each expert: the next one goes where a copy has most to do.

    >>> copied([12, 6, 3], slots=5)
    [3, 1, 1]
    """
    checks.count(slots=slots)
    copies = [1] * len(loads)
    for _ in range(slots - len(loads)):
        busiest = max(range(len(loads)), key=lambda expert: loads[expert] / copies[expert])
        copies[busiest] += 1
    return copies


def placed(loads: Sequence[float], *, slots: int, gpus: int, groups: int = 1, nodes: int = 1) -> Placed:
    """All copies on their GPUs. With groups and nodes, whole groups of experts stay on a node, and so do their copies.

    >>> placed([12, 6, 3], slots=4, gpus=2).gpus
    ((0, 1), (0, 2))
    """
    for whole, value in (("slots", slots), ("gpus", gpus), ("groups", groups)):
        checks.divides(part="nodes", part_value=nodes, whole=whole, whole_value=value)
    checks.divides(part="groups", part_value=groups, whole="experts", whole_value=len(loads))
    each = len(loads) // groups
    of_groups = [sum(loads[group * each : (group + 1) * each]) for group in range(groups)]
    held: list[tuple[int, ...]] = []
    for members in _packed(of_groups, packs=nodes):
        experts = [group * each + place for group in members for place in range(each)]
        mine = [loads[expert] for expert in experts]
        copies = copied(mine, slots=slots // nodes)
        pieces = [(expert, load / n) for expert, load, n in zip(experts, mine, copies, strict=True) for _ in range(n)]
        packs = _packed([load for _, load in pieces], packs=gpus // nodes)
        held += [tuple(sorted(pieces[piece][0] for piece in pack)) for pack in packs]
    return Placed(gpus=tuple(held))


def _packed(weights: Sequence[float], *, packs: int) -> list[list[int]]:
    """Things dealt into packs of equally many, the heaviest first, each to the lightest pack with a place left."""
    checks.divides(part="packs", part_value=packs, whole="things", whole_value=len(weights))
    full, content, load = len(weights) // packs, [list[int]() for _ in range(packs)], [0.0] * packs
    for thing in sorted(range(len(weights)), key=lambda one: -weights[one]):
        lightest = min((pack for pack in range(packs) if len(content[pack]) < full), key=lambda pack: load[pack])
        content[lightest].append(thing)
        load[lightest] += weights[thing]
    return content
