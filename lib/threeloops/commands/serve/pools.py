"""Pools: GPUs that read prompts and GPUs that decode, in copies of their own; for `threeloops serve --prefill-tp`."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace

from threeloops import dtypes
from threeloops.commands.named import part_named
from threeloops.commands.serve.copies import Copy, Served, copy_of
from threeloops.commands.serve.fleets import SEED, Fleet, decoding_fleet
from threeloops.commands.typed import quantity
from threeloops.product_loop import kv_cache, kv_transfer
from threeloops.simulate.product_loop.sizing.prefill_runs import fewest_servers
from threeloops.simulate.product_loop.sizing.replica_runs import SPREAD, Seconds

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
    prefill, handover = copy_of(reading(served, given.prefill_dp), given.prefill_tp), handover_of(served, tp, given)
    promised_s = served.promised.ttft_s
    if promised_s is None:
        raise ValueError("two pools need a promise on the first token, which says how many read prompts: --ttft 1s")
    servers, ttft_s = fewest_servers(
        _readings_s(served, prefill),
        requests_per_s=given.rate,
        promised_s=promised_s,
        together=prefill.layout.dp,
        seed=SEED,
    )
    copies = servers // prefill.layout.dp
    decode = decoding_fleet(served, tp, given.rate, handover.seconds)
    gpus = min(copies * prefill.layout.gpus, decode.gpus)
    if (busy := given.rate * handover.cache_bytes / (gpus * handover.bytes_per_s)) > 1:
        raise ValueError(
            f"the caches of {given.rate:g} prompts a second would take {busy:.2g} times what the links of {gpus} GPUs"
            " carry one way: take a faster --link, or store the cache in fewer bits (--cache fp8)"
        )
    return Pools(prefill=prefill, decode=decode, copies=copies, ttft_s=ttft_s, handover=handover)


def reading(served: Served, dp: int) -> Served:
    """The same as copies that only read prompts are asked for: experts over all GPUs where groups share them."""
    return replace(served, dp=dp, ep=None, dcp=1, drafts=None)


def handover_of(served: Served, tp: int, given: argparse.Namespace) -> Handover:
    """A mean prompt's cache on its way.

    Raises:   ValueError unless the link has a name or a rate
    """
    if bool(given.link) == bool(given.bandwidth):
        raise ValueError(
            "say what a prompt's cache goes over to the GPUs that decode: the link of each GPU by name (--link"
            " infiniband-ndr) or its one-way rate (--bandwidth 50GB/s)"
        )
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

    Formula:  own + groups * shared: the experts compute everybody's tokens
    """
    return copy.times.prompt_s + (copy.layout.dp - 1) * copy.times.shared_prompt_s


def _readings_s(served: Served, copy: Copy) -> Sequence[float]:
    """The same of single prompts, which are equally likely: those that were recorded, or of lengths around the mean."""
    times, lengths = copy.times, served.lengths
    if lengths.drawn:
        tokens = [times.alike(one.new) for one in lengths.each()]
    else:
        places = (2 * place / (SPREAD_OVER - 1) - 1 for place in range(SPREAD_OVER))
        tokens = [max(1, round(lengths.new * (1 + SPREAD * place))) for place in places]
    busy, first_s = _read_s(copy) / times.prompt_s, times.step_s(1)
    return [busy * (first_s + times.per_new_token_s * some) for some in tokens]
