"""Capacity: how many copies of a server a load needs so that its promises hold.

Two things can run out: time between two tokens, and seconds of work. Each gives a number of replicas, as a fraction;
the larger one decides. Memory stands inside the work: the more requests fit at once, the less each pays for weights.

>>> load = Load(requests_per_s=40, prompt_tokens=1500, output_tokens=300)
>>> h100 = Replica(
...     num_gpus=1,
...     weights_bytes=16e9,
...     free_bytes=60e9,
...     cache_bytes_per_token=131_072,
...     flops_per_token=16e9,
...     memory_bytes_per_s=3.35e12,
...     peak_flops_per_s=989.4e12,
...     prefill_utilisation=0.5,
... )
>>> found = bounds(load, h100, itl_s=0.03, headroom=0.3)
>>> f"ITL {found.itl:.2f}, rate {found.rate:.2f}: {found.replicas} replicas"
'ITL 3.23, rate 4.20: 5 replicas'
>>> f"{mean_gap_s(load, h100, replicas=5) * 1e3:.1f} ms between two tokens with all of them"
'10.5 ms between two tokens with all of them'
"""

import math
from dataclasses import dataclass

from threeloops import checks
from threeloops.product_loop import queueing, serving


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What users ask for at the hour that counts."""

    requests_per_s: float
    prompt_tokens: int  # of one request, computed: without what a prefix cache remembers
    output_tokens: int

    def __post_init__(self) -> None:
        checks.positive(requests_per_s=self.requests_per_s)
        checks.count(prompt_tokens=self.prompt_tokens, output_tokens=self.output_tokens)

    @property
    def longest_context(self) -> int:
        """Tokens in the cache when the last one is made."""
        return self.prompt_tokens + self.output_tokens

    @property
    def mean_context(self) -> float:
        """Tokens in the cache halfway through the answer: what a step reads per request, on average."""
        return self.prompt_tokens + self.output_tokens / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One copy of the model on its GPUs; bytes, rates and FLOP/s of all of them together."""

    num_gpus: int
    weights_bytes: float
    free_bytes: float  # left for KV caches: kv_budget.budget_bytes
    cache_bytes_per_token: float
    flops_per_token: float  # of a forward pass: about two per parameter
    memory_bytes_per_s: float
    peak_flops_per_s: float
    prefill_utilisation: float  # share of the peak that reading prompts reaches

    def __post_init__(self) -> None:
        checks.count(num_gpus=self.num_gpus)
        checks.positive(
            weights_bytes=self.weights_bytes,
            free_bytes=self.free_bytes,
            cache_bytes_per_token=self.cache_bytes_per_token,
            flops_per_token=self.flops_per_token,
            memory_bytes_per_s=self.memory_bytes_per_s,
            peak_flops_per_s=self.peak_flops_per_s,
            prefill_utilisation=self.prefill_utilisation,
        )
        checks.fraction(prefill_utilisation=self.prefill_utilisation)

    def prefill_s(self, load: Load) -> float:
        """Seconds that this replica reads one prompt."""
        return serving.prefill_s(
            tokens=load.prompt_tokens,
            flops_per_token=self.flops_per_token,
            peak_flops_per_s=self.peak_flops_per_s,
            utilisation=self.prefill_utilisation,
        )

    def step_s(self, load: Load, *, batch: int) -> float:
        """Seconds of one decode step with so many requests of this load."""
        return serving.decode_step_s(
            weights_bytes=self.weights_bytes,
            cache_bytes=batch * load.mean_context * self.cache_bytes_per_token,
            batch=batch,
            flops_per_token=self.flops_per_token,
            memory_bytes_per_s=self.memory_bytes_per_s,
            peak_flops_per_s=self.peak_flops_per_s,
        )

    def weights_s(self) -> float:
        """Seconds to read all weights once: no step is shorter."""
        return self.weights_bytes / self.memory_bytes_per_s

    def cache_read_s(self, load: Load) -> float:
        """Seconds to read one request's cache in all the steps of its answer together."""
        read = load.output_tokens * load.mean_context * self.cache_bytes_per_token
        return read / self.memory_bytes_per_s

    def memory_slots(self, load: Load) -> int:
        """Requests that fit at once, each with room to grow to its end."""
        return int(self.free_bytes // (load.longest_context * self.cache_bytes_per_token))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Replicas that each bound asks for, not yet rounded."""

    itl: float
    rate: float

    @property
    def binding(self) -> str:
        """The bound that decides."""
        return "itl" if self.itl > self.rate else "rate"

    @property
    def replicas(self) -> int:
        """Whole copies of the server."""
        return math.ceil(max(self.itl, self.rate) * (1 - 1e-12))


def in_flight(load: Load, *, ttft_s: float, itl_s: float) -> float:
    """Requests inside at a time if first tokens take so long and the others are so far apart.

    Formula:  requests/s * (TTFT + (output - 1) * ITL)
    Assumes:  Little's law, and times that were measured or planned with mean_gap_s. A promise is no such time: GPUs
              that are faster than promised hold fewer
    Source:   Little, Operations Research 9(3), 1961, doi:10.1287/opre.9.3.383
    Counted:  tests.product_loop.test_capacity.walked_in_flight
    """
    stay = serving.request_s(ttft_s=ttft_s, itl_s=itl_s, output_tokens=load.output_tokens)
    return queueing.littles_law(requests_per_s=load.requests_per_s, seconds=stay)


def request_work_s(load: Load, replica: Replica, *, batch: int) -> float:
    """Seconds of a replica that one request uses up: its whole prefill, and its share of every step it takes part in.

    Formula:  prefill + output tokens * step of the batch / batch; while steps are memory-bound, that is
              prefill + cache reads + output tokens * weights_s / batch
    Assumes:  prefill and decode share the replica and take turns; the batch is full
    Source:   Pope et al., 2022, arXiv:2211.05102, section 2 (weights once per step, caches once per request)
    Counted:  tests.product_loop.test_capacity.test_work_of_a_request_is_what_a_full_replica_spends
    """
    checks.count(batch=batch)
    return replica.prefill_s(load) + load.output_tokens * replica.step_s(load, batch=batch) / batch


def mean_gap_s(load: Load, replica: Replica, *, replicas: float) -> float:
    """The mean gap between two tokens of a request when so many replicas share the load.

    Formula:  weights_s / (1 - requests/s per replica * (prefill + cache reads of one request)): in every gap the
              weights are read once, and beside that whatever prompts arrive and caches lie there
    Assumes:  prefill and decode take turns on one replica, memory-bound decoding; a steady state
    Raises:   ValueError where that work alone fills the replicas: the gap would grow without end
    Source:   Pope et al., 2022, arXiv:2211.05102, section 2 (weights once per step, caches once per request), solved
              for the step
    Counted:  simulate.product_loop.serving_pools.pooled

    """
    checks.positive(replicas=replicas)
    busy = load.requests_per_s / replicas * (replica.prefill_s(load) + replica.cache_read_s(load))
    if busy >= 1:
        raise ValueError(
            f"prompts and caches take {busy:.3g} of the time of replicas={replicas}; add replicas until it is below 1"
        )
    return replica.weights_s() / (1 - busy)


def inside_each(load: Load, replica: Replica, *, replicas: float) -> float:
    """Requests that one replica decodes at a time, at the gap that so many replicas really give.

    Formula:  requests/s per replica * output * mean_gap_s
    Assumes:  Little's law; as mean_gap_s
    Source:   Little, Operations Research 9(3), 1961, doi:10.1287/opre.9.3.383
    Counted:  tests.product_loop.test_capacity.test_at_the_bare_rate_bound_every_slot_is_taken
    """
    gap_s = mean_gap_s(load, replica, replicas=replicas)
    return queueing.littles_law(requests_per_s=load.requests_per_s / replicas, seconds=load.output_tokens * gap_s)


def bounds(load: Load, replica: Replica, *, itl_s: float, headroom: float) -> Bounds:
    """Replicas by ITL and by rate.

    Formula:  ITL: the replicas with which mean_gap_s is itl_s, requests/s * (prefill + cache reads) / (1 - weights_s /
              itl_s); rate: requests/s * request_work_s with all slots full / (1 - headroom)
    Units:    headroom: the share of the rate that full slots could take and that is not planned for
    Assumes:  equal requests, steady arrivals, a perfect balance between replicas. Without headroom, the rate bound is
              also where everybody inside fits: there inside_each is exactly the slots, each as long as a whole context
    Raises:   ValueError if not even one request fits, or if reading the weights takes longer than the ITL
    Source:   Little, Operations Research 9(3), 1961, doi:10.1287/opre.9.3.383; Pope et al., 2022, arXiv:2211.05102,
              section 2 (what prefill and a decode step cost)
    Counted:  simulate.product_loop.serving_pools.pooled
    """
    slots = _slots(load, replica, itl_s=itl_s, headroom=headroom)
    shared = replica.prefill_s(load) + replica.cache_read_s(load)
    return Bounds(
        itl=load.requests_per_s * shared / (1 - replica.weights_s() / itl_s),
        rate=load.requests_per_s * request_work_s(load, replica, batch=slots) / (1 - headroom),
    )


def _slots(load: Load, replica: Replica, *, itl_s: float, headroom: float) -> int:
    """Slots of a replica that can keep its promises at all."""
    checks.positive(itl_s=itl_s)
    checks.fraction(headroom=headroom)
    if headroom == 1:
        raise ValueError("headroom=1 leaves no time to work in; give a share below 1")
    slots = replica.memory_slots(load)
    if not slots:
        raise ValueError(
            f"free_bytes={replica.free_bytes:.3g} does not hold one context of {load.longest_context:,} tokens; use"
            " more GPUs a replica"
        )
    if replica.weights_s() >= itl_s:
        raise ValueError(
            f"reading the weights takes {replica.weights_s():.3g} s and itl_s={itl_s}; use more GPUs a replica, fewer"
            " bytes a weight, or promise less"
        )
    return slots


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """Replicas of two pools, not yet rounded."""

    prefill: float
    decode: float

    @property
    def replicas(self) -> int:
        """Whole copies, each pool rounded up for itself."""
        return math.ceil(self.prefill * (1 - 1e-12)) + math.ceil(self.decode * (1 - 1e-12))


def pools(load: Load, replica: Replica, *, itl_s: float, headroom: float) -> Pools:
    """Replicas where some only read prompts and the others only decode.

    Formula:  prefill: requests/s * prefill / (1 - headroom); decode: the larger of the two bounds without prefill
    Assumes:  as bounds; the caches that move between the pools cost neither of them time
    Source:   Zhong et al., DistServe, 2024, arXiv:2401.09670; Patel et al., Splitwise, 2023, arXiv:2311.18677
    Counted:  tests.product_loop.test_capacity.test_a_simulator_needs_as_many_in_two_pools
    """
    slots = _slots(load, replica, itl_s=itl_s, headroom=headroom)
    step_s = replica.step_s(load, batch=slots)
    decode = (
        load.requests_per_s * replica.cache_read_s(load) / (1 - replica.weights_s() / itl_s),
        load.requests_per_s * load.output_tokens * step_s / slots / (1 - headroom),
    )
    return Pools(prefill=load.requests_per_s * replica.prefill_s(load) / (1 - headroom), decode=max(decode))
