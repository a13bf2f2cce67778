"""Speculative decoding: a small model drafts, the large one checks all drafted tokens in one step.

>>> (
...     round(tokens_per_check(accepted_share=0.8, drafted=5), 3),
...     round(speedup(accepted_share=0.8, drafted=5, draft_cost=0.05), 2),
... )
(3.689, 2.95)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul

from threeloops import checks
from threeloops.product_loop import serving


def tokens_per_check(*, accepted_share: float, drafted: int) -> float:
    """Tokens that one step of the large model yields: the accepted beginning of the draft, and always one of its own.

    Formula:  (1 - a^(k+1)) / (1 - a), a = accepted share, k = drafted tokens; k + 1 for a = 1
    Assumes:  each drafted token is accepted with the same probability, independently; the first rejected one discards
              the rest
    Source:   Leviathan et al., 2023, arXiv:2211.17192, equation 1
    Counted:  simulate.product_loop.exact_speculation.mean_tokens
    """
    checks.fraction(accepted_share=accepted_share)
    checks.count(at_least=0, drafted=drafted)
    if accepted_share == 1:
        return float(drafted + 1)
    return (1 - accepted_share ** (drafted + 1)) / (1 - accepted_share)


def whole_draft_chance(*, accepted_share: float, drafted: int) -> float:
    """The chance that a check accepts every drafted token.

    Formula:  a^k, a = accepted share, k = drafted tokens
    Assumes:  each drafted token is accepted with the same probability, independently
    Source:   Leviathan et al., 2023, arXiv:2211.17192, equation 1 (the last term of its sum)
    Counted:  simulate.product_loop.exact_speculation.checked

    >>> round(whole_draft_chance(accepted_share=0.8, drafted=3), 3)
    0.512
    """
    checks.fraction(accepted_share=accepted_share)
    checks.count(at_least=0, drafted=drafted)
    return float(accepted_share**drafted)


def tokens_per_check_by_place(accepted_shares: Sequence[float]) -> float:
    """Tokens of one check where each place of the draft has a chance of its own.

    Formula:  1 + a1 + a1 * a2 + ... + a1 * ... * ak
    Units:    accepted_shares: of the drafts that got as far as a place, those accepted there. Engines count accepted
              tokens per place over all drafts: there divide each place by the one before
    Source:   as tokens_per_check, with a chance per place; Leviathan et al., 2023, arXiv:2211.17192
    Counted:  tests.simulate.test_exact_speculation.test_tokens_of_a_check_where_every_place_has_its_own_chance

    >>> tokens_per_check_by_place([0.8, 0.5])
    2.2
    """
    checks.fraction(**{f"place {place}": share for place, share in enumerate(accepted_shares, 1)})
    return float(1 + sum(accumulate(accepted_shares, mul)))


def speedup(*, accepted_share: float, drafted: int, draft_cost: float) -> float:
    """How many times faster tokens come than from the large model alone; below 1 where drafting does not pay.

    Formula:  tokens per check / (drafted * draft cost + 1)
    Units:    draft_cost is one step of the small model over one step of the large one
    Assumes:  checking k + 1 tokens takes the large model no longer than making one: true while decoding is bound by
              memory
    Source:   Leviathan et al., 2023, arXiv:2211.17192, theorem 3.8
    Counted:  drills.speculative.drafts.FASTER
    """
    checks.non_negative(draft_cost=draft_cost)
    return tokens_per_check(accepted_share=accepted_share, drafted=drafted) / (drafted * draft_cost + 1)


def extra_operations(*, accepted_share: float, drafted: int, draft_operations: float) -> float:
    """Arithmetic per produced token, over that of the large model alone: rejected work is work.

    Formula:  (k * c + k + 1) / tokens per check, c = operations of the small model per token over those of the large
              one
    Source:   Leviathan et al., 2023, arXiv:2211.17192, theorem 3.11
    Counted:  drills.speculative.overlaps.WORK

    >>> round(extra_operations(accepted_share=0.8, drafted=5, draft_operations=0.05), 2)
    1.69
    """
    checks.non_negative(draft_operations=draft_operations)
    return (drafted * draft_operations + drafted + 1) / tokens_per_check(accepted_share=accepted_share, drafted=drafted)


def acceptance(target: Sequence[float], draft: Sequence[float]) -> float:
    """The chance that a token drawn from the draft's distribution is accepted: what the two distributions share.

    Formula:  sum over tokens of min(target, draft) = 1 - total variation distance
    Assumes:  a token x of the draft is accepted with probability min(1, target(x) / draft(x))
    Source:   Leviathan et al., 2023, arXiv:2211.17192, theorem 3.5
    Counted:  simulate.product_loop.exact_speculation.mean_tokens

    >>> acceptance([0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    0.7
    """
    _check_shares(target, draft)
    return sum(min(one, other) for one, other in zip(target, draft, strict=True))


def after_refusal(target: Sequence[float], draft: Sequence[float]) -> tuple[float, ...]:
    """The shares by which the large model draws a token in the place of a refused one.

    Formula:  max(0, target - draft) of each token / the sum of that over all tokens
    Assumes:  as in acceptance; drawn in this way, the output is distributed as the target's own
    Raises:   ValueError for a draft that is never refused, because its shares are the target's
    Source:   Leviathan et al., 2023, arXiv:2211.17192, algorithm 1
    Counted:  drills.speculative.overlaps.AFTER

    >>> [round(share, 3) for share in after_refusal([0.5, 0.3, 0.2], [0.25, 0.2, 0.55])]
    [0.714, 0.286, 0.0]
    """
    _check_shares(target, draft)
    left = [max(0.0, one - other) for one, other in zip(target, draft, strict=True)]
    if not sum(left):
        raise ValueError("target and draft have the same shares; a draft like that is never refused")
    return tuple(share / sum(left) for share in left)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeCosts:
    """What a decode step of a model reads and computes."""

    weights_bytes: float
    cache_bytes_per_request: float
    flops_per_token: float

    def step_s(self, *, batch: int, tokens: int, memory_bytes_per_s: float, peak_flops_per_s: float) -> float:
        """Seconds of a step in which every request of the batch has so many tokens.

        Formula:  max(weights / bandwidth, batch * tokens * FLOP per token / peak) + batch * cache / bandwidth
        """
        return serving.decode_step_s(
            weights_bytes=self.weights_bytes,
            cache_bytes=batch * self.cache_bytes_per_request,
            batch=batch * tokens,
            flops_per_token=self.flops_per_token,
            memory_bytes_per_s=memory_bytes_per_s,
            peak_flops_per_s=peak_flops_per_s,
        )


def batch_speedup(
    *,
    target: DecodeCosts,
    draft: DecodeCosts,
    accepted_share: float,
    drafted: int,
    batch: int,
    memory_bytes_per_s: float,
    peak_flops_per_s: float,
) -> float:
    """How many times faster tokens come in a batch; the check has k + 1 tokens of every request to compute.

    Formula:  tokens per check * plain step / (k * draft step + check of k + 1 tokens)
    Assumes:  every step at its floor, serving.decode_step_s: a check reads each cache once for all of its tokens
    Source:   by definition: seconds for the same tokens, without and with a draft
    Counted:  tests.simulate.test_exact_speculation.test_the_speedup_in_a_batch_by_adding_up_what_is_read_and_computed
    """
    machine = {"memory_bytes_per_s": memory_bytes_per_s, "peak_flops_per_s": peak_flops_per_s}
    plain_s = target.step_s(batch=batch, tokens=1, **machine)
    check_s = target.step_s(batch=batch, tokens=drafted + 1, **machine)
    draft_s = draft.step_s(batch=batch, tokens=1, **machine)
    yielded = tokens_per_check(accepted_share=accepted_share, drafted=drafted)
    return yielded * plain_s / (drafted * draft_s + check_s)


def _check_shares(target: Sequence[float], draft: Sequence[float]) -> None:
    checks.count(tokens=len(target))
    if len(target) != len(draft):
        raise ValueError(f"target has {len(target)} tokens, draft {len(draft)}; both need the same vocabulary")
    for name, shares in (("target", target), ("draft", draft)):
        if min(shares) < 0 or abs(sum(shares) - 1) > 1e-6:
            raise ValueError(f"{name} sums to {sum(shares):g}; give shares of at least 0 that sum to 1")
