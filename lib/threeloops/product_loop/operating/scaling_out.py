"""Copies that start cold: how long until a new one answers, and at which load it must be ordered.

>>> cold_start_s(weights_bytes=140e9, store_bytes_per_s=10e9, starting=4, other_s=90)
146.0
"""

from threeloops import checks


def cold_start_s(*, weights_bytes: float, store_bytes_per_s: float, starting: int, other_s: float) -> float:
    """Time from ordering copies until they answer, when all of them read their weights from one store.

    Formula:  other + starting * bytes of weights / rate of the store
    Units:    other_s for machine, image, compiling and graphs, which do not share anything
    Assumes:  the store is what limits, shared evenly; nothing is kept on the machines' own drives
    Source:   by definition: bytes over the rate that is left for each
    Counted:  drills.capacity.scaling.COLD
    """
    checks.positive(weights_bytes=weights_bytes, store_bytes_per_s=store_bytes_per_s)
    checks.count(starting=starting)
    checks.non_negative(other_s=other_s)
    return other_s + starting * weights_bytes / store_bytes_per_s


def load_to_order_at(*, capacity_per_s: float, growth_per_s2: float, cold_start_s: float) -> float:
    """The load at which another copy must be ordered, so that the ones there are do not overflow before it answers.

    Formula:  capacity - growth * cold start
    Units:    requests per second; growth in requests per second, each second
    Assumes:  the load grows steadily
    Raises:   ValueError where the load would pass the capacity from nothing in that time
    Source:   by definition
    Counted:  drills.capacity.scaling.ORDER

    >>> load_to_order_at(capacity_per_s=100, growth_per_s2=0.2, cold_start_s=150)
    70.0
    """
    checks.positive(capacity_per_s=capacity_per_s, growth_per_s2=growth_per_s2, cold_start_s=cold_start_s)
    found = capacity_per_s - growth_per_s2 * cold_start_s
    if found <= 0:
        raise ValueError(
            f"growth_per_s2={growth_per_s2!r} fills capacity_per_s={capacity_per_s!r} within"
            f" cold_start_s={cold_start_s!r}; keep copies warm"
        )
    return found
