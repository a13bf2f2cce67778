"""Count: place every single parameter of a small model on the ranks of a small machine, and add up what each rank
stores.

Nothing here divides a total by a degree. Tensor and expert parallelism deal out the values of each parameter; data
parallelism repeats whatever a rank was dealt. ZeRO then finds the ranks that hold the very same values and deals the
state of those values out among them, one by one.
"""

from collections import defaultdict
from dataclasses import dataclass
from itertools import product


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One tensor of parameters."""

    name: str
    size: int
    # "split": dealt out over tp; "whole": on every tensor rank; "expert": belongs to expert number `expert`
    kind: str
    stage: int
    hidden_matrix: bool = True
    expert: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A machine of pp * dp * tp ranks. Within a stage, neighbouring ranks form a tensor group; experts are cut along
    the same row of ranks.
    """

    dp: int
    tp: int
    pp: int
    ep: int = 1
    expert_tp: int = 1

    def ranks(self) -> list[tuple[int, int]]:
        """Every rank as (stage, place within the stage)."""
        return list(product(range(self.pp), range(self.dp * self.tp)))


@dataclass(slots=True, kw_only=True)
class Stored:
    """Bytes that one rank stores."""

    weights: float = 0
    gradients: float = 0
    optimiser: float = 0


Value = tuple[str, int]  # a parameter's name and the position of one value in it
Bytes = tuple[float, float, float]  # of one value: weight, gradient, optimiser state


def stored_bytes(
    parameters: list[Parameter], grid: Grid, *, zero_stage: int, matrix_bytes: Bytes, other_bytes: Bytes
) -> dict[tuple[int, int], Stored]:
    """What each rank stores, value by value.

    >>> grid = Grid(dp=2, tp=1, pp=1)
    >>> stored_bytes(
    ...     [Parameter(name="w", size=6, kind="split", stage=0)],
    ...     grid,
    ...     zero_stage=1,
    ...     matrix_bytes=(2, 2, 12),
    ...     other_bytes=(2, 2, 12),
    ... )[0, 0]
    Stored(weights=12, gradients=12, optimiser=36)
    """
    totals = {rank: Stored() for rank in grid.ranks()}
    for experts in (False, True):
        family = [parameter for parameter in parameters if (parameter.kind == "expert") == experts]
        per_value = {parameter.name: matrix_bytes if parameter.hidden_matrix else other_bytes for parameter in family}
        held = {
            rank: tuple(value for parameter in family for value in _held(parameter, grid, rank))
            for rank in grid.ranks()
        }
        for group in _replicas(held):
            _store(totals, group, held[group[0]], per_value, zero_stage)
    return totals


def _held(parameter: Parameter, grid: Grid, rank: tuple[int, int]) -> list[Value]:
    """The values of this parameter that this rank computes with."""
    stage, place = rank
    if stage != parameter.stage:
        return []
    if parameter.kind == "whole":
        dealt_to, hand = 1, 0
    elif parameter.kind == "split":
        dealt_to, hand = grid.tp, place % grid.tp
    else:
        if (place // grid.expert_tp) % grid.ep != parameter.expert % grid.ep:
            return []
        dealt_to, hand = grid.expert_tp, place % grid.expert_tp
    return [(parameter.name, position) for position in range(parameter.size) if position % dealt_to == hand]


def _replicas(held: dict[tuple[int, int], tuple[Value, ...]]) -> list[list[tuple[int, int]]]:
    """Ranks grouped by holding the same values: the groups that ZeRO shards over are found, not computed."""
    groups: dict[tuple[Value, ...], list[tuple[int, int]]] = defaultdict(list)
    for rank, values in held.items():
        if values:
            groups[values].append(rank)
    return list(groups.values())


def _store(
    totals: dict[tuple[int, int], Stored],
    group: list[tuple[int, int]],
    values: tuple[Value, ...],
    per_value: dict[str, Bytes],
    zero_stage: int,
) -> None:
    for turn, (name, _) in enumerate(values):
        weight, gradient, optimiser = per_value[name]
        owner = group[turn % len(group)]
        for rank in group:
            mine = rank == owner
            totals[rank].weights += weight if mine or zero_stage < 3 else 0
            totals[rank].gradients += gradient if mine or zero_stage < 2 else 0
            totals[rank].optimiser += optimiser if mine or zero_stage < 1 else 0
