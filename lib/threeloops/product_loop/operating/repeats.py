"""Answers that come out alike: what a small chance at every token makes of a long answer.

>>> round(alike_share(flip=0.001, tokens=500), 4)
0.6064
"""

import math

from threeloops import checks


def alike_share(*, flip: float, tokens: int) -> float:
    """Share of runs at temperature 0 whose answers agree with a given one to the last token.

    Formula:  (1 - flip)^tokens
    Units:    flip: probability that a token comes out otherwise, because sums were taken in another order
    Assumes:  the same probability at every token; after the first other token the answer is another one
    Source:   by definition
    Counted:  drills.batching.repeated.ALIKE
    """
    checks.fraction(flip=flip)
    checks.count(tokens=tokens)
    return float((1 - flip) ** tokens)


def tokens_alike(*, flip: float, share: float) -> float:
    """Length of an answer up to which such a share of the runs agree.

    Formula:  ln(share) / ln(1 - flip)
    Assumes:  as alike_share
    Raises:   ValueError for a flip or share of 0 or 1
    Source:   by definition
    Counted:  drills.batching.repeated.LENGTH

    >>> round(tokens_alike(flip=0.001, share=0.5))
    693
    """
    checks.fraction(flip=flip, share=share)
    if flip in (0, 1) or share in (0, 1):
        raise ValueError(f"flip={flip!r} and share={share!r} must lie between 0 and 1, both left out")
    return math.log(share) / math.log(1 - flip)
