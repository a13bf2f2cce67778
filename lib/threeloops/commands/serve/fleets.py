"""Fleets: how many copies of a model carry a load, and what given GPUs give, one tensor group after another; for
`threeloops serve`.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from threeloops import checks, units
from threeloops.commands.serve.copies import Copy, Served, copy_of
from threeloops.product_loop.expected.expected_token import MIXED
from threeloops.product_loop.sizing.engine_limits import EngineLimits, engine_defaults, engine_limits, most_requests
from threeloops.simulate.product_loop.sizing.replica_runs import (
    LargestRate,
    Replica,
    ReplicaRun,
    ReplicaStep,
    Sizes,
    SpreadSizes,
    TracedSizes,
    at_rate,
    confirming,
    largest_rate,
    with_users,
)

SHARES = (0.9, 0.6, 0.3)  # of the requests that would just keep the gap between tokens: those that are let in
CHUNKS = (4, 16)  # parts of a step's usual tokens
ROUNDS = 4  # answers of each user
AT_ONCE = 3  # full steps within which 99 % of handed requests have a token: one is under way, one is theirs
SEED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Equal copies under their share of the load."""

    copy: Copy
    limits: EngineLimits
    copies: int
    seen: ReplicaRun
    largest: LargestRate | None = None  # of one copy, where a rate is asked for
    at_least: int | None = None  # GPUs, by the bound
    waiting_s: float = 0.0  # for a seat, where there are more users than seats
    tokens_per_s: float  # of all copies, which need not have equally many users

    @property
    def inside(self) -> int:
        """Requests that a copy decodes at a time, on average."""
        return max(1, round(self.seen.inside))

    @property
    def gpus(self) -> int:
        return self.copies * self.copy.layout.gpus

    def keeps(self, served: Served) -> bool:
        """Whether 99 % come in time."""
        return all(self.seen.late_s(name) <= seconds for name, seconds in served.promised_s.items())


def for_rate(served: Served, tp: int, requests_per_s: float, *, at_most: float = math.inf) -> Fleet:
    """The fewest copies on tp GPUs each that carry the rate; beyond `at_most` GPUs it only says that they are more.

    Raises:   ValueError where no number of copies keeps the promises, or surely more than at_most would
    """
    checks.positive(requests_per_s=requests_per_s)
    copy, lengths, promised = copy_of(served, tp), served.in_steps, served.promised_steps
    too_little = requests_per_s * copy.layout.gpus / (at_most + 1)  # a copy that carries it takes more GPUs
    limits, largest = _best_limits(served, copy, beyond_per_s=too_little)
    if too_little and largest.requests_per_s <= too_little:
        raise ValueError(f"more than {at_most} GPUs would keep the promises; give more, or promise less")
    if not largest.requests_per_s:
        late, promise_s = largest.broken, served.promised_s[largest.broken]
        raise ValueError(
            f"even with hardly any load {late.upper()} is {units.fmt_seconds(largest.late_s)} at its 99th percentile,"
            f" and {units.fmt_seconds(promise_s)} are promised; shorter prompts, --hit or a longer promise would do"
        )
    copies, seen = _fewest(served, copy, limits, largest, requests_per_s, promised_s=served.promised_s)
    most = most_requests(copy.bound, lengths, seats=copy.seats, promised=promised)
    # prompts may ride along with the reading of weights, and the other way round
    dp, answers_s = copy.layout.lanes, lengths.answer * copy.bound.step_s(most) / most
    at_least = math.ceil(requests_per_s * max(answers_s, copy.bound.reading_s(dp) / dp)) * copy.layout.gpus
    return Fleet(
        copy=copy,
        limits=limits,
        copies=copies,
        seen=seen,
        largest=largest,
        at_least=at_least,
        tokens_per_s=copies * seen.tokens_per_s,
    )


def _best_limits(served: Served, copy: Copy, *, beyond_per_s: float) -> tuple[EngineLimits, LargestRate]:
    """Those under which a copy carries most; others are followed only as far as they might carry more."""
    found: tuple[EngineLimits, LargestRate] | None = None
    for limits in dict.fromkeys(_limits(served, copy)):  # few seats make some of them alike
        beyond_per_s = max(beyond_per_s, found[1].requests_per_s if found else 0.0)
        largest = _largest(served, copy, limits, beyond_per_s=beyond_per_s)
        if found is None or largest.requests_per_s > found[1].requests_per_s:
            found = limits, largest
    assert found is not None
    return found


def _fewest(
    served: Served,
    copy: Copy,
    limits: EngineLimits,
    largest: LargestRate,
    requests_per_s: float,
    *,
    promised_s: Mapping[str, float],
) -> tuple[int, ReplicaRun]:
    """Copies, to a hundredth, and what their users see: a percentile goes up and down a little with the rate, and the
    promises are kept at the rate that is left to each.
    """
    copies = math.ceil(requests_per_s / largest.requests_per_s)
    while True:
        seen = _seen(served, copy, limits, requests_per_s / copies)
        if all(seen.late_s(name) <= seconds for name, seconds in promised_s.items()):
            return copies, _with_gaps(served, copy, limits, requests_per_s / copies, seen)
        copies += max(1, copies // 100)


def decoding_fleet(served: Served, tp: int, requests_per_s: float, handover_s: float) -> Fleet:
    """The fewest copies on tp GPUs a group that decode what is read elsewhere, and what follows the first tokens.

    Assumes:  the handover is part of a request's mean gap; 99 % find a seat when their cache comes
    Raises:   ValueError where no number of copies keeps the promises
    """
    copy, steps = decoding_copy(served, tp), served.in_steps
    promised, handed_s = served.promised_steps, handover_s / (steps.answer - 1)
    if promised.tpot_s is not None:
        if handed_s >= promised.tpot_s:
            raise ValueError(
                f"handing a cache over takes {units.fmt_seconds(handover_s)}, all that TPOT leaves of an answer's time"
            )
        promised = replace(promised, tpot_s=promised.tpot_s - handed_s)
    most = most_requests(copy.times, steps, seats=copy.seats, promised=promised)
    limits = EngineLimits(max_num_seqs=most, max_num_batched_tokens=max(usual_tokens(served), most + 1))
    seat_s = {"ttft": AT_ONCE * copy.times.step_s(most)}
    given = {"itl": promised.itl_s, "tpot": promised.tpot_s}
    kept_s = seat_s | {name: seconds for name, seconds in given.items() if seconds is not None}
    largest = largest_rate(
        replica_of(served, copy, limits),
        _sizes(served, copy),
        most_per_s=1 / copy.times.work_s(most, steps.answer),
        promised_s=kept_s,
        seed=SEED,
    )
    if not largest.requests_per_s:
        late = "the wait for a seat" if largest.broken == "ttft" else largest.broken.upper()
        raise ValueError(
            f"even with hardly any load, of the copies that decode {late} is {units.fmt_seconds(largest.late_s)} at its"
            " 99th percentile; a larger --tp or a longer promise would do"
        )
    in_tokens_s = kept_s | ({"tpot": promised.tpot_s / served.yielded} if promised.tpot_s is not None else {})
    copies, seen = _fewest(served, copy, limits, largest, requests_per_s, promised_s=in_tokens_s)
    half_s, late_s = (seconds + handover_s / (served.lengths.answer - 1) for seconds in seen.tpot_s)
    return Fleet(
        copy=copy,
        limits=limits,
        copies=copies,
        seen=replace(seen, tpot_s=(half_s, late_s)),
        largest=largest,
        tokens_per_s=copies * seen.tokens_per_s,
    )


def decoding_copy(served: Served, tp: int) -> Copy:
    """A copy whose prompts are read elsewhere."""
    copy = copy_of(served, tp)
    return replace(copy, bound=copy.bound.decoding, expected=copy.expected and copy.expected.decoding)


def prefill_limits(served: Served, copy: Copy) -> EngineLimits:
    """Of an engine that only reads prompts: its own, in each group."""
    own, dp = engine_defaults(served.part), copy.layout.dp
    return EngineLimits(max_num_seqs=dp * own.max_num_seqs, max_num_batched_tokens=dp * own.max_num_batched_tokens)


def _seen(served: Served, copy: Copy, limits: EngineLimits, requests_per_s: float) -> ReplicaRun:
    """What users of one copy see, gaps between tokens only where they are promised."""
    replica, sizes, requests = replica_of(served, copy, limits), _sizes(served, copy), confirming(limits.max_num_seqs)
    asked: dict[str, Any] = {"requests": requests, "seed": SEED, "each_token": served.promised.itl_s is not None}
    return in_tokens(served, at_rate(replica, sizes, requests_per_s=requests_per_s, **asked))


def _with_gaps(served: Served, copy: Copy, limits: EngineLimits, requests_per_s: float, seen: ReplicaRun) -> ReplicaRun:
    """With gaps between tokens, of which there are many, from a shorter run."""
    if served.promised.itl_s is not None:
        return seen
    replica, sizes, requests = replica_of(served, copy, limits), _sizes(served, copy), confirming(limits.max_num_seqs)
    brief = at_rate(replica, sizes, requests_per_s=requests_per_s, requests=requests // 5, seed=SEED)
    return replace(seen, itl_s=brief.itl_s)


def _limits(served: Served, copy: Copy) -> Iterator[EngineLimits]:
    """Worth trying: fewer requests a step leave more time for prompts."""
    for share in SHARES if served.promised_s.keys() & {"itl", "tpot"} else (1.0,):
        yield engine_limits(copy.times, served.in_steps, seats=copy.seats, **_asked(served), share=share)
    if served.lengths.drawn and served.promised.tpot_s:  # one whole prompt makes a short answer late
        for parts in CHUNKS:
            asked = _asked(served) | {"tokens": usual_tokens(served) // parts}
            yield engine_limits(copy.times, served.in_steps, seats=copy.seats, **asked, share=SHARES[1])


def _asked(served: Served) -> dict[str, Any]:
    return {"promised": served.promised_steps, "tokens": usual_tokens(served)}


def usual_tokens(served: Served) -> int:
    """Of a step, where no promise asks for fewer: the engine's own, in each group, or for each stage."""
    return served.dp * served.pp * engine_defaults(served.part).max_num_batched_tokens


def _largest(served: Served, copy: Copy, limits: EngineLimits, *, beyond_per_s: float) -> LargestRate:
    fills, promised_s = 1 / copy.times.work_s(limits.max_num_seqs, served.in_steps.answer), served.promised_steps_s
    replica, asked = replica_of(served, copy, limits), {"most_per_s": fills, "beyond_per_s": beyond_per_s}
    found = largest_rate(replica, _sizes(served, copy), **asked, promised_s=promised_s, seed=SEED)
    return replace(found, late_s=found.late_s / served.yielded) if found.broken == "tpot" else found


def in_tokens(served: Served, seen: ReplicaRun) -> ReplicaRun:
    """A run of steps, each of which makes several tokens of every answer."""
    half_s, late_s = (seconds / served.yielded for seconds in seen.tpot_s)
    each_s = tuple((first_s, gap_s / served.yielded) for first_s, gap_s in seen.each_s)
    return replace(seen, tpot_s=(half_s, late_s), tokens_per_s=seen.tokens_per_s * served.yielded, each_s=each_s)


def for_users(served: Served, tp: int, *, gpus: int, users: int) -> Fleet:
    """What so many users see of so many GPUs, each asking again when the answer has come.

    Raises:   ValueError where tp does not divide the GPUs
    """
    checks.count(gpus=gpus, users=users)
    of_one = tp * served.dp * served.pp
    if of_one == tp:
        checks.divides(part="tp", part_value=tp, whole="gpus", whole_value=gpus)
    elif gpus % of_one:
        raise ValueError(f"gpus={gpus} are no multiple of the {of_one} GPUs that a copy takes")
    copy, copies = copy_of(served, tp), gpus // of_one
    fewer, crowded = divmod(users, copies)  # so many copies have a user more than the others
    limits, seen, waiting_s = _crowd(served, copy, fewer + bool(crowded))
    total = seen.tokens_per_s * (crowded or copies)
    if crowded and fewer:
        total += (copies - crowded) * _crowd(served, copy, fewer)[1].tokens_per_s
    return Fleet(copy=copy, limits=limits, copies=copies, seen=seen, waiting_s=waiting_s, tokens_per_s=total)


def _crowd(served: Served, copy: Copy, users: int) -> tuple[EngineLimits, ReplicaRun, float]:
    """One copy with so many users: its limits, what they see, and how long each waits for a seat, on average."""
    seated = min(users, copy.seats)
    tokens = _chunks(served, copy, seated) or max(usual_tokens(served), seated + 1)
    limits = EngineLimits(max_num_seqs=seated, max_num_batched_tokens=tokens)
    run = with_users(replica_of(served, copy, limits), _sizes(served, copy), rounds=ROUNDS, seed=SEED)
    seen = in_tokens(served, run)
    waiting_s = (users - seated) * served.lengths.answer / seen.tokens_per_s
    late = (seen.ttft_s[0] + waiting_s, seen.ttft_s[1] + waiting_s)
    each_s = tuple((first_s + waiting_s, gap_s) for first_s, gap_s in seen.each_s)
    return limits, replace(seen, ttft_s=late, each_s=each_s), waiting_s


def _chunks(served: Served, copy: Copy, seated: int) -> int | None:
    """Tokens of a step that keep the ITL with all who are seated, if any do."""
    itl_s, token_s = served.promised.itl_s, copy.times.per_chunk_token_s
    if itl_s is None or not token_s or copy.times.step_s(seated) + token_s > itl_s:
        return None
    return seated + copy.layout.lanes * int((itl_s - copy.times.step_s(seated)) / token_s)


def replica_of(served: Served, copy: Copy, limits: EngineLimits) -> Replica:
    """A copy as it is simulated under an engine's limits: seconds of decode steps, and what prompts add to them."""
    chunk = limits.chunk(copy.layout.lanes)
    return Replica(
        step=ReplicaStep(
            decode_s=(0.0, *(copy.times.step_s(requests) for requests in range(1, limits.max_num_seqs + 1))),
            per_new_token_s=copy.times.per_new_token_s,
            groups=copy.layout.lanes,
            per_shared_token_s=copy.times.per_shared_token_s,
            prompt=min(served.lengths.new, chunk),
        ),
        max_num_seqs=limits.max_num_seqs,
        max_num_batched_tokens=limits.max_num_batched_tokens,
        mixed=MIXED[served.engine],
        chunk=chunk if copy.layout.lanes > 1 else None,
    )


def _sizes(served: Served, copy: Copy) -> Sizes:
    """Of prompts what is computed: of drawn ones the tokens of average cost that take as long."""
    lengths, times = served.in_steps, copy.times
    if not times.per_new_token_s:  # prompts are read elsewhere
        drawn = tuple((1, one.answer) for one in lengths.each())
        return TracedSizes(sizes=drawn) if drawn else SpreadSizes(new=1, answer=lengths.answer)
    if not lengths.drawn:
        return SpreadSizes(new=lengths.new, answer=lengths.answer)
    return TracedSizes(sizes=tuple((times.alike(one.new), one.answer) for one in lengths.each()))
