"""Exact speculation: every way that drafting, checking and correcting can go, with its probability as a fraction, and
what text comes out in the end.

Knows no theorem: it follows the algorithm branch by branch. Models are tables from the last token to the shares of the
next one.

>>> target = [[Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 4), Fraction(3, 4)]]
>>> draft = [[Fraction(9, 10), Fraction(1, 10)], [Fraction(1, 2), Fraction(1, 2)]]
>>> speculated(target, draft, drafted=2, length=3) == sampled(target, length=3)
True

Source: Leviathan et al., 2023, arXiv:2211.17192, algorithm 1; Chen et al., 2023, arXiv:2302.01318, algorithm 2
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction

Model = Sequence[Sequence[Fraction]]  # last token -> shares of the next
Texts = dict[tuple[int, ...], Fraction]


def sampled(model: Model, *, length: int) -> Texts:
    """Probability of every text of this length after token 0, drawn token by token from the model."""
    texts: Texts = {(): Fraction(1)}
    for _ in range(length):
        texts = {
            (*text, token): chance * share
            for text, chance in texts.items()
            for token, share in enumerate(model[text[-1] if text else 0])
            if share
        }
    return texts


def speculated(target: Model, draft: Model, *, drafted: int, length: int, always_from_target: bool = False) -> Texts:
    """The same for speculative sampling. always_from_target: a common mistake, which draws the token after a
    rejection from the target's shares as they are.
    """
    done: Texts = defaultdict(Fraction)
    running: Texts = {(): Fraction(1)}
    while running:
        going: Texts = defaultdict(Fraction)
        for text, chance in running.items():
            for new, share in checked(target, draft, text[-1] if text else 0, drafted, always_from_target):
                longer = text + new
                (done if len(longer) >= length else going)[longer[:length]] += chance * share
        running = dict(going)
    return {text: chance for text, chance in done.items() if chance}


def checked(
    target: Model, draft: Model, last: int, drafted: int, always_from_target: bool = False
) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """(tokens that one check yields, probability), branch by branch."""
    if drafted == 0:
        for token, share in enumerate(target[last]):
            yield (token,), share
        return
    wanted, offered = target[last], draft[last]
    rejected = Fraction(0)
    for token, share in enumerate(offered):
        taken = min(Fraction(1), wanted[token] / share) if share else Fraction(0)
        rejected += share * (1 - taken)
        if share * taken:
            for rest, chance in checked(target, draft, token, drafted - 1, always_from_target):
                yield (token, *rest), share * taken * chance
    left = (
        list(wanted) if always_from_target else [max(Fraction(0), p - q) for p, q in zip(wanted, offered, strict=True)]
    )
    for token, share in enumerate(left):
        if rejected and share:
            yield (token,), rejected * share / sum(left)


def mean_tokens(target: Model, draft: Model, *, drafted: int) -> Fraction:
    """Tokens of the first check, on average."""
    return sum((len(new) * chance for new, chance in checked(target, draft, 0, drafted)), Fraction(0))
