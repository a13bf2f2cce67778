"""Placement: which GPU is whose part of a model, and which exchanges that keeps inside a node.

A layout gives every kind of parallelism a degree. Numbering the GPUs then needs an order as well: the innermost kind
gets neighbouring GPUs, and only neighbours share a node.

>>> order = (("tp", 4), ("dp", 2), ("pp", 4))
>>> coordinates(13, order=order)
{'tp': 1, 'dp': 1, 'pp': 1}
>>> group(13, kind="dp", order=order), nodes_of_a_group(kind="dp", order=order, gpus_per_node=4)
([9, 13], 2)

Source: Narayanan et al., 2021, arXiv:2104.04473, section 3 (tensor groups inside a node); Megatron Core,
        parallel_state.py (order "tp-cp-ep-dp-pp")
"""

from collections.abc import Sequence

from threeloops import checks

Order = Sequence[tuple[str, int]]  # kinds of parallelism with their degrees, the innermost first


def num_gpus(*, order: Order) -> int:
    """GPUs of one copy of the layout: the product of its degrees."""
    if not order or len({kind for kind, _ in order}) < len(order):
        raise ValueError(f"order={list(order)!r} must name each kind once, like [('tp', 8), ('dp', 4), ('pp', 2)]")
    total = 1
    for kind, degree in order:
        checks.count(**{kind: degree})
        total *= degree
    return total


def coordinates(gpu: int, *, order: Order) -> dict[str, int]:
    """The place of a GPU along every kind, counted from 0.

    Formula:  mixed-radix digits of the number, the innermost kind first
    Raises:   ValueError for a number outside the layout
    Counted:  tests.training_loop.test_layouts.test_ranks_are_numbered_as_nested_loops_would
    """
    checks.count(at_least=0, gpu=gpu)
    if gpu >= num_gpus(order=order):
        raise ValueError(
            f"gpu={gpu} must be less than {num_gpus(order=order)}, the product of the degrees; GPUs count from 0"
        )
    places = {}
    for kind, degree in order:
        gpu, places[kind] = divmod(gpu, degree)
    return places


def stride(*, kind: str, order: Order) -> int:
    """How far apart the numbers of neighbours along a kind are: the product of the degrees further in."""
    checks.one_of([name for name, _ in order], kind=kind)
    apart = 1
    for name, degree in order:
        if name == kind:
            break
        apart *= degree
    return apart


def group(gpu: int, *, kind: str, order: Order) -> list[int]:
    """The GPUs that differ from this one along one kind only, itself included: those that it exchanges with for that
    kind.
    """
    apart, first = (
        stride(kind=kind, order=order),
        gpu - coordinates(gpu, order=order)[kind] * stride(kind=kind, order=order),
    )
    return [first + place * apart for place in range(dict(order)[kind])]


def nodes_of_a_group(*, kind: str, order: Order, gpus_per_node: int) -> int:
    """Nodes over which a group of that kind is spread; the most, if groups differ.

    Assumes:  consecutive numbers fill one node after another
    """
    checks.count(gpus_per_node=gpus_per_node)
    return max(
        len({member // gpus_per_node for member in group(gpu, kind=kind, order=order)})
        for gpu in range(num_gpus(order=order))
    )
