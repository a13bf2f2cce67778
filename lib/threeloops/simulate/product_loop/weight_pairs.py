"""Weight pairs: the first weight of two has been rounded, and the second is moved until the layer's output is best.

Knows no formula: it tries, and goes towards the better side.

>>> round(best_move(0.1, own=4.0, together=3.0, other=4.0), 6)
-0.075
"""


def best_move(error: float, *, own: float, together: float, other: float) -> float:
    """The move of a second weight that leaves the least squared output error: an interval halved, towards the better
    side, until it is a point.
    """

    def left(move: float) -> float:
        return own * error**2 + 2 * together * error * move + other * move**2

    low, high = -200 * abs(error), 200 * abs(error)
    for _ in range(200):
        middle = (low + high) / 2  # as far to one side as to the other: which side is worse?
        low, high = (low, middle) if left(middle - abs(error)) < left(middle + abs(error)) else (middle, high)
    return (low + high) / 2
