"""What a serving run is told and what it tells: requests with their lengths, and the moments of each.

>>> request = Request(arrival_s=0.5, prompt_tokens=900, output_tokens=3)
>>> moments = Moments(place=0, request=request)
>>> moments.admitted_s, moments.first_token_s, moments.finished_s = 0.75, 1.5, 2.5
>>> moments.waited_s, moments.ttft_s, moments.tpot_s
(0.25, 1.0, 0.5)
"""

import itertools
import math
from collections.abc import Hashable
from dataclasses import dataclass, field

from threeloops import checks


@dataclass(frozen=True, slots=True)
class Request:
    """One request: when it arrives and how many tokens it brings and wants. Requests of one `prefix` have their first
    `shared_tokens` in common. A larger `priority` goes first where the policy looks at it.
    """

    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    prefix: Hashable = None
    shared_tokens: int = 0
    priority: int = 0

    def __post_init__(self) -> None:
        checks.non_negative(arrival_s=self.arrival_s)
        checks.count(prompt_tokens=self.prompt_tokens, output_tokens=self.output_tokens)
        checks.count(at_least=0, shared_tokens=self.shared_tokens)
        if self.shared_tokens > self.prompt_tokens:
            raise ValueError(
                f"shared_tokens={self.shared_tokens} is more than prompt_tokens={self.prompt_tokens}; what is shared is"
                " the prompt's beginning"
            )


@dataclass(slots=True)
class Moments:
    """What happened to one request, in seconds of the run; nan for what never happened."""

    place: int  # in the list of requests
    request: Request
    admitted_s: float = math.nan  # the first time it got a slot
    first_token_s: float = math.nan
    finished_s: float = math.nan  # its own last token, whoever else is still running
    released_s: float = math.nan  # its slot is free again: later than finished_s in a static batch
    slot: int = -1
    preempted: int = 0  # how often it lost its slot
    shed: bool = False  # turned away on arrival
    reused_tokens: int = 0  # prompt tokens that the prefix cache had
    token_s: list[float] = field(default_factory=list)  # every token's moment, where the run was asked for them
    decoded: list[tuple[int, int]] = field(default_factory=list)  # counts of decode steps between which it decoded

    @property
    def waited_s(self) -> float:
        """Arrival to the first slot."""
        return self.admitted_s - self.request.arrival_s

    @property
    def ttft_s(self) -> float:
        """Arrival to the first token."""
        return self.first_token_s - self.request.arrival_s

    @property
    def request_s(self) -> float:
        """Arrival to the last token."""
        return self.finished_s - self.request.arrival_s

    @property
    def tpot_s(self) -> float:
        """The mean gap between its tokens; nan for a single token."""
        gaps = self.request.output_tokens - 1
        return (self.finished_s - self.first_token_s) / gaps if gaps else math.nan

    @property
    def gaps_s(self) -> list[float]:
        """Every ITL of this request, where the run kept each token."""
        return [gap for _, gap in self.gap_moments]

    @property
    def gap_moments(self) -> list[tuple[float, float]]:
        """When each token after the first came, and the gap before it."""
        return [(after, after - before) for before, after in itertools.pairwise(self.token_s)]


class Sequence:
    """A request inside a server: what it has still to compute."""

    __slots__ = (
        *("admission", "done", "last", "member", "moments", "produced", "prompt", "shared", "since", "swapped"),
        "unread",
    )

    def __init__(self, moments: Moments) -> None:
        self.moments = moments
        self.prompt = moments.request.prompt_tokens  # after a preemption also the tokens it had made
        self.done = 0  # prompt tokens in the cache
        self.produced = 0
        self.unread = True  # the prompt, or some of it, must still be computed
        self.swapped = False  # its cache is somewhere else, whole
        self.since = 0  # the server's count of decode steps after which it decodes
        self.last = -1  # the server's count of decode steps after which it has ended
        self.admission = 0  # who was admitted after whom
        self.shared = 0  # of its blocks, those that belong to a prefix
        self.member = False  # it uses its prefix in the cache

    @property
    def context(self) -> int:
        """Tokens it holds once it is admitted: its prompt, or all it had when it was swapped out."""
        return self.prompt + (self.produced - 1 if self.swapped else 0)
