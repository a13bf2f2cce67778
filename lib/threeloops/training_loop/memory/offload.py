"""Offload: weights and optimiser state that wait in host memory or on drives, and what the way to the GPU costs.

The question is always the same: how many FLOPs does the GPU do for each byte that has to cross the slow link? That
arithmetic intensity, times the link's rate, is the speed that the link allows.

>>> from threeloops.units import GB, TFLOP
>>> crossing = weight_crossings_bytes(weight_bytes=2, gradient_bytes=2, recompute="full")
>>> reuse = arithmetic_intensity(tokens=1024, flops_per_token=8, crossing_bytes=crossing)
>>> (
...     reuse,
...     round(
...         kept_speed_share(
...             arithmetic_intensity=reuse, bytes_per_s_one_way=70 * GB, flops_per_s=70 * TFLOP, overlapped=False
...         ),
...         3,
...     ),
... )
(1024.0, 0.506)

Source: Rajbhandari et al., ZeRO-Infinity, 2021, arXiv:2104.07857, sections 4 to 6; Ren et al., ZeRO-Offload, 2021,
        arXiv:2101.06840
"""

from collections.abc import Sequence
from dataclasses import dataclass

from threeloops import checks


def weight_crossings_bytes(*, weight_bytes: float, gradient_bytes: float, recompute: str) -> float:
    """Bytes per parameter that cross in one pass over a batch when weights and gradients live on the far side.

    Formula:  weight_bytes * passes + gradient_bytes; passes: forward and backward, and a second forward pass under
              full recomputation
    Assumes:  nothing stays on the GPU between passes; each micro-batch pays anew; selective recomputation multiplies
              by no weights
    Raises:   ValueError for a recompute other than "none", "selective" and "full"
    Source:   Rajbhandari et al., 2021, arXiv:2104.07857, section 4.1
    Counted:  drills.zero_fsdp.offload.TOKENS

    >>> weight_crossings_bytes(weight_bytes=2, gradient_bytes=2, recompute="none")
    6
    """
    checks.positive(weight_bytes=weight_bytes, gradient_bytes=gradient_bytes)
    checks.one_of(("none", "selective", "full"), recompute=recompute)
    return weight_bytes * (3 if recompute == "full" else 2) + gradient_bytes


def arithmetic_intensity(*, tokens: float, flops_per_token: float, crossing_bytes: float) -> float:
    """FLOPs that the GPU does per byte that crosses, for every parameter alike.

    Formula:  flops_per_token * tokens / crossing_bytes
    Units:    tokens of one GPU between two crossings; flops_per_token per parameter: 6, or 8 with full recomputation
    Assumes:  work in proportion to parameters: attention's products of activations are not counted
    Counted:  tests.training_loop.test_offload.test_published_needs_of_parameters_and_gradients

    >>> arithmetic_intensity(
    ...     tokens=2048, flops_per_token=8, crossing_bytes=2 * 16
    ... )  # a ZeRO-Infinity optimiser: read and written once
    512.0
    """
    checks.positive(tokens=tokens, flops_per_token=flops_per_token, crossing_bytes=crossing_bytes)
    return flops_per_token * tokens / crossing_bytes


def kept_speed_share(
    *, arithmetic_intensity: float, bytes_per_s_one_way: float, flops_per_s: float, overlapped: bool
) -> float:
    """Share of its speed that a GPU keeps when every byte must cross a link of that rate.

    Formula:  one after the other: a * b / (a * b + f); overlapped: min(1, a * b / f)
    Units:    bytes_per_s_one_way for one GPU, one way; flops_per_s as achieved without offload, not the datasheet's
    Source:   Rajbhandari et al., 2021, arXiv:2104.07857, section 4, equation 6 (one after the other)
    Counted:  simulate.training_loop.offloaded_layers.stream

    >>> kept_speed_share(arithmetic_intensity=1000, bytes_per_s_one_way=25e9, flops_per_s=100e12, overlapped=True)
    0.25
    """
    checks.positive(
        arithmetic_intensity=arithmetic_intensity, bytes_per_s_one_way=bytes_per_s_one_way, flops_per_s=flops_per_s
    )
    fed = arithmetic_intensity * bytes_per_s_one_way
    return min(1.0, fed / flops_per_s) if overlapped else fed / (fed + flops_per_s)


def tokens_needed(
    *, efficiency: float, flops_per_token: float, crossing_bytes: float, bytes_per_s_one_way: float, flops_per_s: float
) -> float:
    """Tokens per GPU between crossings at which a share of its speed is kept, transfers and computing one after the
    other.

    Formula:  efficiency / (1 - efficiency) * flops_per_s / bytes_per_s_one_way * crossing_bytes / flops_per_token
    Raises:   ValueError for an efficiency of 0 or 1: no finite batch hides a transfer that nothing runs beside
    Counted:  drills.zero_fsdp.offload.TOKENS

    >>> round(
    ...     tokens_needed(
    ...         efficiency=0.5, flops_per_token=8, crossing_bytes=8, bytes_per_s_one_way=70e9, flops_per_s=70e12
    ...     )
    ... )
    1000
    """
    checks.fraction(efficiency=efficiency)
    if efficiency in (0, 1):
        raise ValueError(
            f"efficiency={efficiency} must lie between 0 and 1: one after the other, some time is always lost; try 0.9"
        )
    checks.positive(
        flops_per_token=flops_per_token,
        crossing_bytes=crossing_bytes,
        bytes_per_s_one_way=bytes_per_s_one_way,
        flops_per_s=flops_per_s,
    )
    return efficiency / (1 - efficiency) * flops_per_s / bytes_per_s_one_way * crossing_bytes / flops_per_token


@dataclass(frozen=True, slots=True, kw_only=True)
class HostUpdate:
    """An optimiser step on the host, in its three parts."""

    down_s: float  # gradients leave the GPUs
    update_s: float  # the host reads and writes the optimiser's state
    up_s: float  # new weights return

    @property
    def total_s(self) -> float:
        return self.down_s + self.update_s + self.up_s


def host_update(
    *,
    num_parameters: float,
    gradient_bytes: float,
    state_bytes: float,
    weight_bytes: float,
    links: int,
    link_bytes_per_s_one_way: float,
    memory_bytes_per_s: float,
) -> HostUpdate:
    """Seconds of an optimiser step whose state lives in the memory of one host, sharded over its GPUs.

    Formula:  down num_parameters * gradient_bytes / (links * rate); update num_parameters * (gradient_bytes + 2 *
              state_bytes + weight_bytes) / memory rate; up num_parameters * weight_bytes / (links * rate)
    Units:    num_parameters of the whole host; state_bytes per parameter (12: master copy and two moments)
    Assumes:  one after the other (ZeRO-Offload overlaps parts); the update is limited by the host's memory; copies
              into pinned memory are free
    Source:   Ren et al., 2021, arXiv:2101.06840, sections 3 and 4 (gradients down, Adam on the CPU, weights up)
    Counted:  tests.training_loop.test_offload.test_a_host_update_moves_every_value_once

    >>> step = host_update(
    ...     num_parameters=8e9,
    ...     gradient_bytes=2,
    ...     state_bytes=12,
    ...     weight_bytes=2,
    ...     links=8,
    ...     link_bytes_per_s_one_way=50e9,
    ...     memory_bytes_per_s=400e9,
    ... )
    >>> round(step.down_s, 3), round(step.update_s, 3), round(step.up_s, 3)
    (0.04, 0.56, 0.04)
    """
    checks.count(links=links)
    checks.positive(
        num_parameters=num_parameters, gradient_bytes=gradient_bytes, state_bytes=state_bytes, weight_bytes=weight_bytes
    )
    checks.positive(link_bytes_per_s_one_way=link_bytes_per_s_one_way, memory_bytes_per_s=memory_bytes_per_s)
    road = links * link_bytes_per_s_one_way
    return HostUpdate(
        down_s=num_parameters * gradient_bytes / road,
        update_s=num_parameters * (gradient_bytes + 2 * state_bytes + weight_bytes) / memory_bytes_per_s,
        up_s=num_parameters * weight_bytes / road,
    )


def drive_pass_s(
    *, num_parameters: float, state_bytes: float, read_bytes_per_s: float, write_bytes_per_s: float
) -> float:
    """Seconds in which drives give up an optimiser's state and take it back.

    Formula:  num_parameters * state_bytes / read rate + num_parameters * state_bytes / write rate
    Units:    num_parameters and rates of one node, all its drives together
    Assumes:  reading and writing share the drives, so that neither hides the other; long sequential transfers
    Source:   Rajbhandari et al., 2021, arXiv:2104.07857, section 4.1 (states are read once and written once per step)
    Counted:  drills.zero_fsdp.updates.DRIVES

    >>> round(drive_pass_s(num_parameters=10e9, state_bytes=12, read_bytes_per_s=50e9, write_bytes_per_s=30e9), 3)
    6.4
    """
    checks.positive(
        num_parameters=num_parameters,
        state_bytes=state_bytes,
        read_bytes_per_s=read_bytes_per_s,
        write_bytes_per_s=write_bytes_per_s,
    )
    return num_parameters * state_bytes / read_bytes_per_s + num_parameters * state_bytes / write_bytes_per_s


def owner_fetch_s(
    *, size_bytes: float, ranks: int, link_bytes_per_s_one_way: float, exchange_bytes_per_s_one_way: float
) -> float:
    """Seconds until all ranks hold a tensor that one of them owns: through the owner's link, then broadcast among the
    GPUs.

    Formula:  size / link + size / exchange (nothing to broadcast with one rank)
    Assumes:  a pipelined broadcast without latency; the two hops follow each other
    Counted:  simulate.training_loop.ring.broadcast

    >>> owner_fetch_s(size_bytes=4e9, ranks=8, link_bytes_per_s_one_way=50e9, exchange_bytes_per_s_one_way=400e9)
    0.09
    """
    checks.count(ranks=ranks)
    checks.positive(
        size_bytes=size_bytes,
        link_bytes_per_s_one_way=link_bytes_per_s_one_way,
        exchange_bytes_per_s_one_way=exchange_bytes_per_s_one_way,
    )
    return size_bytes / link_bytes_per_s_one_way + (size_bytes / exchange_bytes_per_s_one_way if ranks > 1 else 0)


def sharded_fetch_s(
    *, size_bytes: float, ranks: int, link_bytes_per_s_one_way: float, exchange_bytes_per_s_one_way: float
) -> float:
    """Seconds until all ranks hold a tensor of which each owns a share: all links at once, then an all-gather.

    Formula:  size / (ranks * link) + (ranks - 1) / ranks * size / exchange
    Assumes:  every rank has a link of its own; a bandwidth-optimal all-gather without latency; the two hops follow
              each other
    Source:   Rajbhandari et al., 2021, arXiv:2104.07857, section 6.1 (bandwidth-centric partitioning)
    Counted:  simulate.training_loop.ring.all_gather

    >>> round(
    ...     sharded_fetch_s(size_bytes=4e9, ranks=8, link_bytes_per_s_one_way=50e9, exchange_bytes_per_s_one_way=400e9),
    ...     5,
    ... )
    0.01875
    """
    checks.count(ranks=ranks)
    checks.positive(
        size_bytes=size_bytes,
        link_bytes_per_s_one_way=link_bytes_per_s_one_way,
        exchange_bytes_per_s_one_way=exchange_bytes_per_s_one_way,
    )
    return (
        size_bytes / (ranks * link_bytes_per_s_one_way)
        + (ranks - 1) / ranks * size_bytes / exchange_bytes_per_s_one_way
    )


def streamed_s(*, num_layers: int, hops_s: Sequence[float], compute_s: float, prefetched: bool) -> float:
    """Seconds for equal layers that come over several hops, one after another, and are computed with.

    Formula:  prefetched: sum(hops) + compute + (num_layers - 1) * max(hops, compute); otherwise num_layers *
              (sum(hops) + compute)
    Assumes:  every hop and the GPU work side by side, with room for all num_layers that are on their way
    Source:   Rajbhandari et al., 2021, arXiv:2104.07857, section 6.2 (overlap-centric design)
    Counted:  simulate.training_loop.offloaded_layers.stream

    >>> (
    ...     streamed_s(num_layers=10, hops_s=(3, 2, 1), compute_s=4, prefetched=True),
    ...     streamed_s(num_layers=10, hops_s=(3, 2, 1), compute_s=4, prefetched=False),
    ... )
    (46, 100)
    """
    checks.count(num_layers=num_layers)
    checks.non_negative(compute_s=compute_s, **{f"hops_s[{place}]": hop for place, hop in enumerate(hops_s)})
    once = sum(hops_s) + compute_s
    return once + (num_layers - 1) * max(*hops_s, compute_s) if prefetched else num_layers * once


def tiled_working_bytes(*, inputs: int, outputs: int, tiles: int, bytes_per_parameter: float) -> float:
    """Contiguous bytes for the weights (and gradients) of the part of a linear operator that is at work.

    Formula:  inputs * outputs * bytes_per_parameter / tiles
    Units:    bytes_per_parameter: 4 for 16-bit weights and gradients together
    Assumes:  tiles of equal size, run one after another, fetched and released each
    Raises:   ValueError if tiles do not divide outputs
    Source:   Rajbhandari et al., 2021, arXiv:2104.07857, sections 3 (4 * hd * 4hd bytes) and 5.1.3 (memory-centric
              tiling)
    Counted:  simulate.training_loop.offloaded_layers.tiled_linear

    >>> tiled_working_bytes(inputs=8192, outputs=4 * 8192, tiles=1, bytes_per_parameter=4) / 2**30
    1.0
    """
    checks.count(inputs=inputs, outputs=outputs, tiles=tiles)
    checks.positive(bytes_per_parameter=bytes_per_parameter)
    checks.divides(part="tiles", part_value=tiles, whole="outputs", whole_value=outputs)
    return inputs * outputs * bytes_per_parameter / tiles
