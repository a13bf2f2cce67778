"""Repair orders: make the repairs in every order there is, write down what each of them brought, and take the mean."""

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction


def brought(factors: Mapping[str, Fraction], order: Sequence[str], *, whole: Fraction) -> dict[str, Fraction]:
    """What each repair takes off the whole when they are made in this order.

    >>> {
    ...     name: int(saved)
    ...     for name, saved in brought({"a": Fraction(2), "b": Fraction(3)}, ["a", "b"], whole=Fraction(60)).items()
    ... }
    {'a': 30, 'b': 20}
    """
    found, now = {}, whole
    for name in order:
        faster = now / factors[name]
        found[name], now = now - faster, faster
    return found


def every_order(factors: Mapping[str, Fraction], *, whole: Fraction) -> list[dict[str, Fraction]]:
    """One account per order.

    >>> len(every_order({"a": Fraction(2), "b": Fraction(3), "c": Fraction(5)}, whole=Fraction(60)))
    6
    """
    return [brought(factors, order, whole=whole) for order in itertools.permutations(factors)]


def mean(factors: Mapping[str, Fraction], *, whole: Fraction) -> dict[str, Fraction]:
    """What each repair brings on average over the orders.

    >>> {name: int(saved) for name, saved in mean({"a": Fraction(2), "b": Fraction(3)}, whole=Fraction(60)).items()}
    {'a': 20, 'b': 30}
    """
    accounts = every_order(factors, whole=whole)
    return {name: sum((one[name] for one in accounts), Fraction(0)) / len(accounts) for name in factors}
