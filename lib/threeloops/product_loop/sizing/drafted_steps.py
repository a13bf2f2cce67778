"""Drafted steps: what steps take and yield where a small model drafts tokens that the large one checks at once.

>>> drafts = Drafts(drafted=3, accepted_share=0.7, cost=0.05)
>>> f"{drafts.yielded:.2f} tokens a check, so that an answer of 300 takes {drafts.checks_of(300)}"
'2.53 tokens a check, so that an answer of 300 takes 118'
"""

from dataclasses import dataclass, replace

from threeloops import checks
from threeloops.product_loop.sizing.request_times import RequestTimes
from threeloops.product_loop.speculative import tokens_per_check


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafts:
    """How many tokens are drafted, how many of them are accepted, and what drafting costs: all of it to be measured."""

    drafted: int  # tokens before each check
    accepted_share: float  # the chance that a drafted token is accepted, if those before it are
    cost: float  # one step of the drafting model over one of the large one

    def __post_init__(self) -> None:
        checks.count(drafted=self.drafted)
        checks.fraction(accepted_share=self.accepted_share)
        checks.non_negative(cost=self.cost)

    @property
    def checked(self) -> int:
        """Tokens of a request in a check."""
        return self.drafted + 1

    @property
    def yielded(self) -> float:
        """Tokens of a check, on average; as speculative.tokens_per_check."""
        return tokens_per_check(accepted_share=self.accepted_share, drafted=self.drafted)

    def checks_of(self, answer: int) -> int:
        """Checks that an answer of so many tokens takes: two at least, so that there is a gap."""
        return max(2, round(answer / self.yielded))


def drafted_times(plain: RequestTimes, checking: RequestTimes, drafts: Drafts) -> RequestTimes:
    """Steps of drafts and a check.

    Formula:  drafted * cost * plain step + check
    Assumes:  drafts of all requests side by side, one after another; a prompt costs the drafting model nothing
    Source:   Leviathan et al., 2023, arXiv:2211.17192, theorem 3.8, with a check that takes what its tokens take
    Counted:  tests.product_loop.sizing.test_drafted_steps.test_tokens_come_as_often_as_in_a_played_loop
    """
    drafting = drafts.drafted * drafts.cost
    decode_s = tuple((requests, check_s + drafting * plain.step_s(requests)) for requests, check_s in checking.decode_s)
    read_s = plain.prompt_s - plain.step_s(1)  # what a prompt adds to a step stays as it is
    return replace(plain, decode_s=decode_s, prompt_s=read_s + decode_s[0][1])
