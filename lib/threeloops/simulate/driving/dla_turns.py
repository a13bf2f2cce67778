"""A graph run piece by piece on two engines, in every order that its edges allow.

>>> fewest([(), (0,), (1,)], on_dla=[True, False, True])
2
"""

from collections.abc import Sequence


def fewest(after: Sequence[Sequence[int]], *, on_dla: Sequence[bool]) -> int:
    """The fewest runs of nodes on the DLA, over all orders: a run ends when the GPU has the next node.

    Walks sets of nodes that are done, with the engine that did the last one; knows no paths.
    """
    states = {(frozenset[int](), False): 0}  # done, the last one on the DLA -> runs so far
    for _ in after:
        following: dict[tuple[frozenset[int], bool], int] = {}
        for (done, last), runs in states.items():
            for node, needs in enumerate(after):
                if node not in done and done.issuperset(needs):
                    state = (done | {node}, on_dla[node])
                    cost = runs + (on_dla[node] and not last)
                    following[state] = min(cost, following.get(state, cost))
        states = following
    return min(states.values())
