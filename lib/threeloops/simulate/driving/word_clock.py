"""Word clock: a model that writes token after token, and somebody who looks at the clock after each."""

from fractions import Fraction


def tokens_until(deadline: Fraction, *, first: Fraction, step: Fraction) -> int:
    """Tokens that are there in time: the first one, then one a step.

    >>> tokens_until(Fraction(100), first=Fraction(40), step=Fraction(25))
    3
    """
    now, made = first, 0
    while now <= deadline:
        made += 1
        now += step
    return made
