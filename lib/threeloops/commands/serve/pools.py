"""Pools: GPUs that read prompts and GPUs that decode, in copies of their own; for `threeloops serve --prefill-tp`: the
fewest that carry a rate, and what given GPUs give, however they are split.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from threeloops import dtypes
from threeloops.commands.named import part_named
from threeloops.commands.serve.copies import Copy, Served, copy_of
from threeloops.commands.serve.fleets import (
    ROUNDS,
    SEED,
    Fleet,
    decoding_copy,
    decoding_fleet,
    in_tokens,
    replica_of,
    usual_tokens,
)
from threeloops.commands.typed import quantity
from threeloops.product_loop import kv_cache, kv_transfer
from threeloops.product_loop.sizing.engine_limits import EngineLimits
from threeloops.simulate.product_loop.sizing.pool_runs import DecodeCopy, at_pool_rate, with_pool_users
from threeloops.simulate.product_loop.sizing.prefill_runs import fewest_servers
from threeloops.simulate.product_loop.sizing.replica_runs import SPREAD, Seconds, confirming

SPREAD_OVER = 21  # lengths of prompts that are read, where they are spread evenly


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """How a prompt's cache goes from one pool to the other."""

    link: str
    bytes_per_s: float  # one way, of each GPU
    links: int  # of one request's cache: as many GPUs as the smaller group has
    cache_bytes: float  # of a mean prompt

    @property
    def seconds(self) -> float:
        """Of one cache by itself."""
        return kv_transfer.transfer_s(cache_bytes=self.cache_bytes, hops_bytes_per_s=[self.links * self.bytes_per_s])


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """Copies that read prompts, and copies that decode."""

    prefill: Copy
    decode: Fleet
    copies: int  # that read prompts
    ttft_s: Seconds
    handover: Handover

    @property
    def kind(self) -> str:
        """Which times are simulated: bounds, where one of the two has no others."""
        return "expected" if self.prefill.expected and self.decode.copy.expected else "bounds"

    @property
    def read_s(self) -> float:
        """How often a busy prefill copy is done with a mean prompt."""
        return _read_s(self.prefill) / self.prefill.layout.dp

    @property
    def prefill_gpus(self) -> int:
        return self.copies * self.prefill.layout.gpus

    @property
    def gpus(self) -> int:
        return self.prefill_gpus + self.decode.gpus

    def keeps(self, served: Served) -> bool:
        """Whether 99 % come in time."""
        late = {"ttft": self.ttft_s[1], "itl": self.decode.seen.itl_s[1], "tpot": self.decode.seen.tpot_s[1]}
        return all(late[name] <= seconds for name, seconds in served.promised_s.items())


def pools_for(served: Served, tp: int, given: argparse.Namespace) -> Pools:
    """The fewest copies of both kinds that carry the rate: those that decode on tp GPUs a group, those that read
    prompts as the flags say.

    Raises:   ValueError where the promises cannot be kept, or the links cannot carry the caches
    """
    prefill, handover = prefill_copy(served, given), handover_of(served, tp, given)
    promised_s = served.promised.ttft_s
    if promised_s is None:
        raise ValueError("two pools need a promise on the first token, which says how many read prompts: --ttft 1s")
    servers, ttft_s = fewest_servers(
        tuple(_readings_s(served, prefill)),
        requests_per_s=given.rate,
        promised_s=promised_s,
        together=prefill.layout.dp,
        seed=SEED,
    )
    copies = servers // prefill.layout.dp
    decode = decoding_fleet(served, tp, given.rate, handover.seconds)
    pools = Pools(prefill=prefill, decode=decode, copies=copies, ttft_s=ttft_s, handover=handover)
    _links_carry(pools, given.rate)
    return pools


def through_both(served: Served, pools: Pools, requests_per_s: float) -> Fleet:
    """The copies that decode, with every request's first token and mean gap from a run through both pools."""
    decode, prefill = pools.decode, pools.prefill
    each_s = at_pool_rate(
        _requests_s(served, prefill),
        requests_per_s=requests_per_s,
        servers=pools.copies * prefill.layout.dp,
        copies=decode.copies,
        copy=replica_of(served, decode.copy, decode.limits),
        handover_s=pools.handover.seconds,
        requests=confirming(decode.limits.max_num_seqs),
        seed=SEED,
    )
    in_tokens_s = tuple((first_s, gap_s / served.yielded) for first_s, gap_s in each_s)
    return replace(decode, seen=replace(decode.seen, each_s=in_tokens_s))


def _links_carry(pools: Pools, rate: float) -> None:
    handover, gpus = pools.handover, min(pools.prefill_gpus, pools.decode.gpus)
    if (busy := rate * handover.cache_bytes / (gpus * handover.bytes_per_s)) > 1:
        raise ValueError(
            f"the caches of {rate:.3g} prompts a second would take {busy:.2g} times what the links of {gpus} GPUs"
            " carry one way: take a faster --link, or store the cache in fewer bits (--cache fp8)"
        )


def splits_for(served: Served, tp: int, given: argparse.Namespace) -> list[Pools]:
    """What users see of given GPUs, however they are split into copies that read prompts, as the flags say, and copies
    that decode on tp GPUs a group.

    Raises:   ValueError where the GPUs are too few for one of each, or the links cannot carry the caches
    """
    prefill, handover = prefill_copy(served, given), handover_of(served, tp, given)
    decode = decoding_copy(served, tp)
    if prefill.layout.gpus + decode.layout.gpus > given.gpus:
        raise ValueError(
            f"--gpus {given.gpus} are too few: a copy that reads prompts takes {prefill.layout.gpus} and one that"
            f" decodes {decode.layout.gpus}"
        )
    numbers = _splits(given.gpus, prefill.layout.gpus, decode.layout.gpus)
    return [_split(served, given, prefill, decode, handover, copies=numbers) for numbers in numbers]


def _splits(gpus: int, prefill: int, decode: int) -> Iterator[tuple[int, int]]:
    """Copies of both kinds; of those with as many that decode only the one with most that read."""
    for copies in range(1, (gpus - decode) // prefill + 1):
        decoding = (gpus - copies * prefill) // decode
        if (gpus - (copies + 1) * prefill) // decode < decoding:
            yield copies, decoding


def _split(
    served: Served,
    given: argparse.Namespace,
    prefill: Copy,
    decode: Copy,
    handover: Handover,
    *,
    copies: tuple[int, int],
) -> Pools:
    reading_copies, decoding_copies = copies
    most = min(decode.seats, given.users)
    decode_s = (0.0, *(decode.times.step_s(requests) for requests in range(1, most + 1)))
    seen = in_tokens(
        served,
        with_pool_users(
            _requests_s(served, prefill),
            users=given.users,
            servers=reading_copies * prefill.layout.dp,
            copies=[DecodeCopy(decode_s=decode_s, max_num_seqs=most)] * decoding_copies,
            handover_s=handover.seconds,
            rounds=ROUNDS,
            seed=SEED,
        ),
    )
    of_one = replace(seen, tokens_per_s=seen.tokens_per_s / decoding_copies, inside=seen.inside / decoding_copies)
    limits = EngineLimits(max_num_seqs=most, max_num_batched_tokens=max(usual_tokens(served), most + 1))
    fleet = Fleet(copy=decode, limits=limits, copies=decoding_copies, seen=of_one, tokens_per_s=seen.tokens_per_s)
    pools = Pools(prefill=prefill, decode=fleet, copies=reading_copies, ttft_s=seen.ttft_s, handover=handover)
    _links_carry(pools, seen.tokens_per_s / served.lengths.answer)
    return pools


def _requests_s(served: Served, prefill: Copy) -> list[tuple[float, int]]:
    """Of equally likely requests what their prompts take to read, and the steps of their answers."""
    steps = served.in_steps
    if steps.drawn:
        answers = [max(2, one.answer) for one in steps.each()]
        return list(zip(_readings_s(served, prefill), answers, strict=True))
    answers = [max(2, round(steps.answer * share)) for share in _shares()]
    return [(seconds, answer) for seconds in _readings_s(served, prefill) for answer in answers]


def _shares() -> list[float]:
    """Of a mean length, those that are spread evenly around it."""
    return [1 + SPREAD * (2 * place / (SPREAD_OVER - 1) - 1) for place in range(SPREAD_OVER)]


def reading(served: Served, dp: int) -> Served:
    """The same as copies that only read prompts are asked for: experts over all GPUs where groups share them."""
    return replace(served, dp=dp, ep=None, dcp=1, drafts=None)


def prefill_copy(served: Served, given: argparse.Namespace) -> Copy:
    """A copy that reads prompts.

    Raises:   ValueError as copy_of, with the flags of this pool
    """
    try:
        return copy_of(reading(served, given.prefill_dp), given.prefill_tp)
    except ValueError as error:
        raise ValueError(re.sub(r"\b([td]p)=", r"prefill_\1=", str(error), count=1)) from error


def handover_of(served: Served, tp: int, given: argparse.Namespace) -> Handover:
    """A mean prompt's cache on its way."""
    link = part_named("link", given.link, given.catalog) if given.link else None
    element = dtypes.bytes_per_element(served.cache)
    cache = kv_cache.request_bytes(served.model, tokens=served.lengths.prompt, bytes_per_element=element)
    return Handover(
        link=link.name if link else "as given",
        bytes_per_s=link["bytes_per_s_one_way"] if link else quantity(given.bandwidth, "B/s"),
        links=min(tp, given.prefill_tp),
        cache_bytes=cache,
    )


def _read_s(copy: Copy) -> float:
    """What a group takes for a mean prompt while every group of its copy reads one.

    Formula:  own + groups * shared: the experts compute the tokens of all groups
    """
    return copy.times.prompt_s + (copy.layout.dp - 1) * copy.times.shared_prompt_s


def _readings_s(served: Served, copy: Copy) -> Sequence[float]:
    """The same of single prompts, which are equally likely: those that were recorded, or of lengths around the mean."""
    times, lengths = copy.times, served.lengths
    if lengths.drawn:
        tokens = [times.alike(one.new) for one in lengths.each()]
    else:
        tokens = [max(1, round(lengths.new * share)) for share in _shares()]
    busy, first_s = _read_s(copy) / times.prompt_s, times.step_s(1)
    return [busy * (first_s + times.per_new_token_s * some) for some in tokens]
