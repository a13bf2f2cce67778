"""A graph run piece by piece on two engines, in every order that its edges allow; a chain of layers by the clock.

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


def chain_s(layers: Sequence[tuple[str, float]], *, hand_over_s: float, write_s: float, read_s: float) -> float:
    """Seconds of layers that follow each other, each on its engine: (engine, seconds).

    At every change the engine that ends writes its tensor, and the one that begins reads it.

    >>> chain_s([("dla", 3), ("gpu", 1), ("dla", 2)], hand_over_s=0.5, write_s=0.25, read_s=0.125)
    7.75
    """
    now, last = 0.0, layers[0][0]
    for engine, takes in layers:
        if engine != last:
            now += write_s + hand_over_s + read_s
        now, last = now + takes, engine
    return now
