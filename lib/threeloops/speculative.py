"""Speculative decoding: a small model drafts, the large one checks all drafted tokens in one step.

>>> round(tokens_per_check(accepted_share=0.8, drafted=5), 3), round(speedup(accepted_share=0.8, drafted=5, draft_cost=0.05), 2)
(3.689, 2.95)
"""

from threeloops import checks


def tokens_per_check(*, accepted_share: float, drafted: int) -> float:
    """Tokens that one step of the large model yields: the accepted beginning of the draft, and always one of its own.

    Formula:  (1 - a^(k+1)) / (1 - a), a = accepted share, k = drafted tokens; k + 1 for a = 1
    Assumes:  each drafted token is accepted with the same probability, independently; the first rejected one discards the rest
    Source:   Leviathan et al., 2023, arXiv:2211.17192, equation 1
    """
    checks.fraction(accepted_share=accepted_share)
    checks.count(at_least=0, drafted=drafted)
    if accepted_share == 1:
        return float(drafted + 1)
    return (1 - accepted_share ** (drafted + 1)) / (1 - accepted_share)


def speedup(*, accepted_share: float, drafted: int, draft_cost: float) -> float:
    """How many times faster tokens come than from the large model alone; below 1 where drafting does not pay.

    Formula:  tokens per check / (drafted * draft cost + 1)
    Units:    draft_cost is one step of the small model over one step of the large one
    Assumes:  checking k + 1 tokens takes the large model no longer than making one: true while decoding is bound by memory
    Source:   Leviathan et al., 2023, arXiv:2211.17192, theorem 3.8
    """
    checks.non_negative(draft_cost=draft_cost)
    return tokens_per_check(accepted_share=accepted_share, drafted=drafted) / (drafted * draft_cost + 1)


def extra_operations(*, accepted_share: float, drafted: int, draft_operations: float) -> float:
    """Arithmetic per produced token, over that of the large model alone: rejected work is work.

    Formula:  (k * c + k + 1) / tokens per check, c = operations of the small model per token over those of the large one
    Source:   Leviathan et al., 2023, arXiv:2211.17192, theorem 3.11

    >>> round(extra_operations(accepted_share=0.8, drafted=5, draft_operations=0.05), 2)
    1.69
    """
    checks.non_negative(draft_operations=draft_operations)
    return (drafted * draft_operations + drafted + 1) / tokens_per_check(accepted_share=accepted_share, drafted=drafted)
