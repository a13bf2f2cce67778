"""Engine limits: how many requests and how many tokens a step may hold so that tokens come as fast as promised.

>>> times = RequestTimes(decode_s=((1, 0.010), (64, 0.0163)), prompt_s=0.110, new=1000)  # 0.1 ms a prompt token
>>> lengths = RequestLengths(prompt=1000, kept=0, answer=250)
>>> engine_limits(times, lengths, seats=64, promised=Promises(itl_s=0.040), share=0.8, tokens=8192)
EngineLimits(max_num_seqs=48, max_num_batched_tokens=301)
"""

from dataclasses import dataclass

from threeloops import checks
from threeloops.facts.hardware import Part
from threeloops.product_loop.sizing.request_lengths import RequestLengths
from threeloops.product_loop.sizing.request_times import RequestTimes
from threeloops.units import GiB

LARGE_BYTES = 70 * GiB  # of a GPU's memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Promises:
    """What 99 of 100 users shall see; None: nothing is promised."""

    ttft_s: float | None = None  # of 99 % of requests
    itl_s: float | None = None  # of 99 % of all gaps between two tokens
    tpot_s: float | None = None  # the mean gap of 99 % of requests

    def __post_init__(self) -> None:
        given = {"ttft": self.ttft_s, "itl": self.itl_s, "tpot": self.tpot_s}
        checks.positive(**{name: seconds for name, seconds in given.items() if seconds is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """Of one step, in vLLM's words."""

    max_num_seqs: int
    max_num_batched_tokens: int  # one of each request that decodes, and the chunks of prompts

    def chunk(self, groups: int) -> int:
        """Tokens of prompts that a step leaves to each of so many groups, when all requests decode."""
        return max(1, (self.max_num_batched_tokens - self.max_num_seqs) // groups)


def engine_defaults(part: Part) -> EngineLimits:
    """The limits of a step in vLLM's server unless told otherwise.

    Source:   vLLM, engine/arg_utils.py, get_batch_defaults: more for GPUs of 70 GiB and more that are no A100

    >>> from threeloops.facts.hardware import part
    >>> engine_defaults(part("h100-sxm5")), engine_defaults(part("a100-sxm4-80gb")).max_num_batched_tokens
    (EngineLimits(max_num_seqs=1024, max_num_batched_tokens=8192), 2048)
    """
    if part.capacity_bytes() >= LARGE_BYTES and "a100" not in part.key:
        return EngineLimits(max_num_seqs=1024, max_num_batched_tokens=8192)
    return EngineLimits(max_num_seqs=256, max_num_batched_tokens=2048)


def engine_limits(
    times: RequestTimes, lengths: RequestLengths, *, seats: int, promised: Promises, share: float, tokens: int
) -> EngineLimits:
    """Limits with which a full step takes as long as the gap between two tokens may.

    Formula:  share * most_requests; for chunks of prompts what is then left of the gap:
              (ITL - step(requests)) / per_chunk_token_s tokens of each group, and one for each request
    Units:    share: above 0 to 1; the rest is slack, in which prompts that came together are read; tokens: of a step,
              where no ITL asks for fewer
    Assumes:  single tokens and chunks in one step
    Raises:   ValueError where a step of one request with one token of a prompt takes longer than promised
    Source:   by definition: a step as long as the promise
    Counted:  tests.product_loop.sizing.test_engine_limits.test_a_full_step_takes_no_longer_than_promised
    """
    checks.positive(share=share)
    checks.fraction(share=share)
    requests = max(1, int(share * most_requests(times, lengths, seats=seats, promised=promised)))
    if promised.itl_s is not None and times.per_chunk_token_s:
        chunk = int((promised.itl_s - times.step_s(requests)) / times.per_chunk_token_s)
        tokens = min(tokens, requests + times.groups * chunk)
    return EngineLimits(max_num_seqs=requests, max_num_batched_tokens=max(tokens, requests + times.groups))


def most_requests(times: RequestTimes, lengths: RequestLengths, *, seats: int, promised: Promises) -> int:
    """Requests at a time whose steps are as long as the shorter promise, with the prompts that they bring.

    Formula:  the largest number with
              step(number) + reading_s(number / answer) <= min(ITL, TPOT)
    Assumes:  a steady state: in each step number / answer requests end, and as many come
    Raises:   ValueError where one request alone takes longer
    Source:   by definition: as many requests come in a step as end
    Counted:  tests.product_loop.sizing.test_engine_limits.test_the_most_requests_are_those_of_a_walk
    """
    checks.count(seats=seats)
    given = [seconds for seconds in (promised.itl_s, promised.tpot_s) if seconds is not None]
    if not given:
        return seats

    def full_s(requests: int) -> float:
        return times.step_s(requests) + times.reading_s(requests / lengths.answer)

    if full_s(1) > min(given):
        raise ValueError(
            f"a step of a single request takes {full_s(1):.3g} s, and {min(given):g} s are promised"
            " between tokens: promise more, use more GPUs for each copy, or store the weights in fewer bits"
        )
    fits, too_many = 1, seats + 1
    while too_many - fits > 1:  # the time of a step grows with its requests
        middle = (fits + too_many) // 2
        if full_s(middle) <= min(given):
            fits = middle
        else:
            too_many = middle
    return fits
