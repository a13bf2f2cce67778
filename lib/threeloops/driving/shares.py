"""Shares: who made a system faster, when several repairs did it together.

Repairs that multiply have no shares that add up by themselves: what one of them saves depends on which came before.
Two ways out: shares of the logarithm, and the average over all orders.

>>> repairs = {"kernels": 2.0, "network": 1.5}
>>> {name: round(share, 3) for name, share in log_shares(repairs).items()}
{'kernels': 0.631, 'network': 0.369}
>>> {name: round(hours, 1) for name, hours in saved_in_order(repairs, whole=72).items()}
{'kernels': 36.0, 'network': 12.0}
"""

import itertools
import math
from collections.abc import Callable, Collection, Mapping

from threeloops import checks


def log_shares(factors: Mapping[str, float]) -> dict[str, float]:
    """Shares of a speed-up that is a product; they sum to 1, in whatever order the repairs were made.

    Formula:  ln(factor) / ln(product of all)
    Raises:   ValueError if nothing became faster: there is no speed-up to share
    Source:   by definition: logarithms of factors add up
    Counted:  tests.driving.test_shares.test_shares_of_the_logarithm_are_halvings

    >>> round(log_shares({"first": 4, "second": 2})["first"], 3)
    0.667
    """
    _check(factors)
    whole = math.fsum(math.log(factor) for factor in factors.values())
    if whole <= 0:
        raise ValueError(f"the factors multiply to {math.exp(whole):.4g}; give some whose product is above 1")
    return {name: math.log(factor) / whole for name, factor in factors.items()}


def saved_in_order(factors: Mapping[str, float], *, whole: float) -> dict[str, float]:
    """What each repair saves of the whole, made one after the other in this order.

    Formula:  what is left before it * (1 - 1 / factor)
    Source:   by definition
    Counted:  simulate.driving.repair_orders.brought
    """
    _check(factors)
    checks.positive(whole=whole)
    found, left = {}, whole
    for name, factor in factors.items():
        found[name], left = left * (1 - 1 / factor), left / factor
    return found


def mean_over_orders(saved: Callable[[frozenset[str]], float], repairs: Collection[str]) -> dict[str, float]:
    """What each repair adds to the saving, on average over all orders in which they could have been made.

    Formula:  sum over the sets S without it of |S|! (n - |S| - 1)! / n! * (saved(S with it) - saved(S))
    Units:    saved: what a set of repairs saves together, in any unit; the averages sum to what all save
    Source:   Shapley, A Value for n-Person Games, 1953, doi:10.1515/9781400881970-018
    Counted:  simulate.driving.repair_orders.mean

    >>> hours = {frozenset(): 0, frozenset({"a"}): 36, frozenset({"b"}): 24, frozenset({"a", "b"}): 48}
    >>> mean_over_orders(hours.__getitem__, ["a", "b"])
    {'a': 30.0, 'b': 18.0}
    """
    checks.count(repairs=len(repairs))
    return {name: math.fsum(_weighed(saved, name, [one for one in repairs if one != name])) for name in repairs}


def _weighed(saved: Callable[[frozenset[str]], float], name: str, others: list[str]) -> list[float]:
    n = len(others) + 1
    return [
        math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n) * (saved(have | {name}) - saved(have))
        for size in range(n)
        for have in map(frozenset, itertools.combinations(others, size))
    ]


def _check(factors: Mapping[str, float]) -> None:
    checks.count(repairs=len(factors))
    checks.positive(**dict(factors))
