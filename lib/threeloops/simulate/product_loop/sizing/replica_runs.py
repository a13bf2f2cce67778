"""Replica runs: one replica under a load, request by request, and the largest rate at which it keeps its promises.

>>> step = ReplicaStep(decode_s=(0.0, 0.010, 0.011, 0.012), per_new_token_s=1e-4)
>>> server = Replica(step=step, max_num_seqs=3, max_num_batched_tokens=503, mixed=True)
>>> alone = at_rate(server, SpreadSizes(new=1000, answer=100), requests_per_s=0.1, requests=20, seed=1)
>>> f"{alone.ttft_s[0]:.3f} s to the first token, {alone.itl_s[0] * 1e3:.0f} ms to each other"
'0.111 s to the first token, 10 ms to each other'
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from threeloops import checks
from threeloops.simulate.product_loop.serving_policies import Policy
from threeloops.simulate.product_loop.serving_requests import Moments, Request
from threeloops.simulate.product_loop.serving_run import Run, run
from threeloops.simulate.product_loop.serving_steps import StepContents
from threeloops.simulate.product_loop.sizing.draws import Draws, arrivals_s, quantiles

Seconds = tuple[float, float]  # median and 99th percentile
SPREAD = 0.5  # lengths lie evenly between this share below their mean and as much above
WARMING = 0.25  # of the requests, those that find the replica still empty
HALVINGS, SEARCHING = 4, 400  # requests of each attempt, or four times as many as are inside at most
CONFIRMING, STEP_BACK = 3000, 0.93  # then so many, of other draws; while a promise is broken, a step back


@dataclass(frozen=True, slots=True)
class ReplicaStep:
    """A step's time: of so many requests that decode, by their number, and of each prompt token beside. Of several
    groups each reads prompts of its own, and all wait for the one that has most to read.
    """

    decode_s: Sequence[float]
    per_new_token_s: float
    groups: int = 1
    per_shared_token_s: float = 0.0  # of per_new_token_s, what the tokens of all groups add up to
    prompt: int = 0  # of several groups, what one reads of a mean prompt in a step

    def __call__(self, contents: StepContents) -> float:
        tokens = contents.prefill_tokens
        if self.groups == 1:
            return self.decode_s[max(1, contents.decodes)] + self.per_new_token_s * tokens
        most = max(min(tokens, self.prompt), tokens / self.groups)
        read_s = self.per_shared_token_s * tokens + (self.per_new_token_s - self.per_shared_token_s) * most
        return self.decode_s[max(1, contents.decodes)] + read_s

    def steps_s(self, first_s: float, steps: int, growing: int) -> float:
        """Of decode steps in a row, as long as nobody joins or leaves: all alike."""
        return steps * first_s

    def steps_in(self, first_s: float, seconds: float, growing: int) -> int:
        """How many of them fill the seconds."""
        return math.ceil(seconds / first_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One engine with its limits."""

    step: ReplicaStep
    max_num_seqs: int
    max_num_batched_tokens: int
    mixed: bool  # chunks of prompts beside single tokens, or before them
    chunk: int | None = None  # of several groups, tokens that each reads in a step at most

    @property
    def policy(self) -> Policy:
        return Policy(
            name="a replica",
            slots=self.max_num_seqs,
            order="decode first" if self.mixed else "prefill first",
            token_budget=self.max_num_batched_tokens,
            long_prefill_token_threshold=self.chunk,
        )


class Sizes(Protocol):
    """Where the tokens of requests are drawn from."""

    def drawn(self, requests: int, seed: int) -> list[tuple[int, int]]:
        """Prompt and answer of each request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedSizes:
    """Requests that somebody recorded: what is computed of each prompt, and its answer, kept together."""

    sizes: tuple[tuple[int, int], ...]

    def drawn(self, requests: int, seed: int) -> list[tuple[int, int]]:
        """Prompt and answer of each; an answer of one token, which has no gap, gets a second."""
        draws = Draws(seed)
        chosen = (self.sizes[draws.below(len(self.sizes))] for _ in range(requests))
        return [(new, max(answer, 2)) for new, answer in chosen]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadSizes:
    """Mean tokens of a request: those of its prompt that are computed, and its answer."""

    new: int
    answer: int

    def drawn(self, requests: int, seed: int) -> list[tuple[int, int]]:
        """Prompt and answer of each request."""
        draws = Draws(seed)
        prompts, answers = (
            [max(round(mean * (1 - SPREAD + 2 * SPREAD * draws.share())), least) for _ in range(requests)]
            for mean, least in ((self.new, 1), (self.answer, 2))
        )
        return list(zip(prompts, answers, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRun:
    """What the users of one replica see, once it is no longer empty."""

    ttft_s: Seconds
    itl_s: Seconds  # of all gaps; nan where tokens were not kept
    tpot_s: Seconds  # of each request's mean gap
    tokens_per_s: float  # of answers
    inside: float  # requests that decode or are read, on average
    each_s: tuple[Seconds, ...] = ()  # of every request its first token and its mean gap

    def in_time(self, *, ttft_s: float = math.inf, tpot_s: float = math.inf) -> float:
        """The share of requests that kept both promises.

        Formula:  requests with first token and mean gap in time / requests; Zhong et al., DistServe, 2024
        Raises:   ValueError for a run that kept no request's times
        """
        if not self.each_s:
            raise ValueError("each_s is empty: this run kept no request's times; at_rate and with_users keep them")
        return sum(first <= ttft_s and gap <= tpot_s for first, gap in self.each_s) / len(self.each_s)

    def late_s(self, what: str) -> float:
        """The 99th percentile of "ttft", "itl" or "tpot"."""
        return {"ttft": self.ttft_s, "itl": self.itl_s, "tpot": self.tpot_s}[what][1]


def at_rate(
    replica: Replica, sizes: Sizes, *, requests_per_s: float, requests: int, seed: int, each_token: bool = True
) -> ReplicaRun:
    """Requests arrive as they like, so many a second. Without each token the gaps between them are not known, and the
    run takes a tenth of the time.

    Assumes:  Poisson arrivals; lengths as `sizes` draws them, each request's by themselves
    """
    arrivals = arrivals_s(requests_per_s=requests_per_s, requests=requests, seed=seed)
    given = [Request(at, *sized) for at, sized in zip(arrivals, sizes.drawn(requests, seed), strict=True)]
    done = run(given, step_s=replica.step, policy=replica.policy, keep_stretches=each_token)
    return _seen(done, first=int(WARMING * requests), to_seat_s=True)


def with_users(replica: Replica, sizes: Sizes, *, rounds: int, seed: int) -> ReplicaRun:
    """As many users as the replica has seats, each of whom asks again as soon as the answer has come.

    Assumes:  as at_rate, and that nobody waits for a seat: the first token is timed from it on
    """
    requests = replica.max_num_seqs * (rounds + 1)
    given = [Request(0.0, *sized) for sized in sizes.drawn(requests, seed)]
    done = run(given, step_s=replica.step, policy=replica.policy, keep_stretches=True)
    return _seen(done, first=replica.max_num_seqs, to_seat_s=False)


def _seen(done: Run, *, first: int, to_seat_s: bool) -> ReplicaRun:
    late = done.served[first:]
    firsts_s = [one.ttft_s - (0 if to_seat_s else one.waited_s) for one in late]
    gaps_s = [one.tpot_s for one in late]
    begin_s, end_s = late[0].admitted_s, max(one.admitted_s for one in late)
    stayed_s = sum(max(0.0, min(one.finished_s, end_s) - max(one.admitted_s, begin_s)) for one in done.served)
    made = sum(_made(one, begin_s, end_s) for one in done.served)
    seconds = end_s - begin_s
    return ReplicaRun(
        ttft_s=_half_and_late(firsts_s),
        itl_s=_gaps_s(done, late),
        tpot_s=_half_and_late(gaps_s),
        tokens_per_s=made / seconds,
        inside=stayed_s / seconds,
        each_s=tuple(zip(firsts_s, gaps_s, strict=True)),
    )


def _made(one: Moments, begin_s: float, end_s: float) -> float:
    """Tokens of an answer between two moments, spread evenly from its first to its last."""
    inside_s = max(0.0, min(one.finished_s, end_s) - max(one.first_token_s, begin_s))
    return one.request.output_tokens * inside_s / (one.finished_s - one.first_token_s)


def _gaps_s(done: Run, late: Iterable[Moments]) -> Seconds:
    """Of all gaps between tokens: a decode step gives as many alike as requests decoded in the one before, too."""
    stretches, often = done.stretches, defaultdict[float, int](int)
    if not stretches:
        return math.nan, math.nan
    follows = {0: 0} | {until: place for place, (until, *_) in enumerate(stretches, 1)}
    begun, more = [0] * len(stretches), [0] * (len(stretches) + 1)
    for moments in late:
        for since, until in moments.decoded:
            first = follows[since]
            often[stretches[first][2] - moments.first_token_s] += 1
            begun[first] += 1
            more[first] += 1
            more[follows[until]] -= 1
    before_s = 0.0
    for decoding, new, (_, steps, first_s, each_s, end_s) in zip(accumulate(more), begun, stretches, strict=False):
        if decoding > new:
            often[first_s - before_s] += decoding - new
        if decoding and steps > 1:
            often[each_s] += decoding * (steps - 1)
        before_s = end_s
    half, late_s = quantiles(often, [0.5, 0.99])
    return half, late_s


def _half_and_late(seconds: Iterable[float]) -> Seconds:
    half, late = quantiles(seconds, [0.5, 0.99])
    return half, late


def confirming(max_num_seqs: int) -> int:
    """Requests of a run whose 99th percentile is shown: enough to fill every seat several times."""
    return max(CONFIRMING, 8 * max_num_seqs)


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestRate:
    """How far a replica can be loaded, and what stands in the way of more."""

    requests_per_s: float  # 0: not even a sixteenth of the rate that fills the replica
    broken: str  # the promise that is broken at the least rate that was too much; "" where the replica is full
    late_s: float  # the 99th percentile of what was promised there


def largest_rate(
    replica: Replica,
    sizes: Sizes,
    *,
    most_per_s: float,
    promised_s: Mapping[str, float],
    seed: int,
    beyond_per_s: float = 0.0,
) -> LargestRate:
    """The largest rate of requests at which 99 % of what was promised comes in time; where it is not beyond a rate that
    something else carries, any rate up to that one, unconfirmed.

    Formula:  by halving between 0 and most_per_s, HALVINGS times; then by steps back, until a longer run of other draws
              keeps all promises
    Shapes:   promised_s: "ttft", "itl", "tpot" -> seconds; what is not in it is not promised
    Assumes:  as at_rate
    """
    checks.positive(most_per_s=most_per_s)

    def worst(rate: float, requests: int, seed: int) -> tuple[float, str, float]:
        """Of the promise that is kept least: how many times over, which, and its 99th percentile."""
        seen = at_rate(
            replica, sizes, requests_per_s=rate, requests=requests, seed=seed, each_token="itl" in promised_s
        )
        late_s = {name: seen.late_s(name) for name in promised_s}
        return max(((late_s[name] / promised_s[name], name, late_s[name]) for name in late_s), default=(0.0, "", 0.0))

    fits, too_much, why, why_s = 0.0, most_per_s, "", 0.0
    for _ in range(HALVINGS):
        if too_much <= beyond_per_s:
            break
        middle = (fits + too_much) / 2
        over, name, late_s = worst(middle, max(SEARCHING, 4 * replica.max_num_seqs), seed + 1)
        if over > 1:
            too_much, why, why_s = middle, name, late_s
        else:
            fits = middle
    least = most_per_s / 2**HALVINGS / 2
    while fits > beyond_per_s and promised_s:
        over, name, late_s = worst(fits, confirming(replica.max_num_seqs), seed)
        if over <= 1:
            break
        why, why_s, fits = name, late_s, fits * STEP_BACK if fits > least else 0.0
    return LargestRate(requests_per_s=fits, broken=why, late_s=why_s)
