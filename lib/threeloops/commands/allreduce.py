"""`threeloops allreduce`: what a collective costs."""

import argparse

from threeloops import units
from threeloops.commands.named import part_named
from threeloops.commands.typed import quantity, whole
from threeloops.commands.working import Line, Working, plain
from threeloops.training_loop.network.collective_algorithms import algorithms, is_pipelined
from threeloops.training_loop.network.collective_limits import lower_bound, optimal_chunks
from threeloops.training_loop.network.collectives import SIZE_MEANS, bus_factor, collective_time
from threeloops.units import fmt

SOURCES = (
    "Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005 (the algorithms and the α–β model)",
    "Patarasuk, Yuan, JPDC 69(2), 2009, doi:10.1016/j.jpdc.2008.09.002 (ring, lower bound)",
    "NVIDIA nccl-tests, doc/PERFORMANCE.md (algbw, busbw)",
)


def working(
    *, op: str, algorithm: str, size_bytes: float, ranks: int, alpha_s: float, bytes_per_s_one_way: float, link: str
) -> Working:
    """One collective by one algorithm, with both of NCCL's bandwidths and the bound that nothing gets below."""
    network = {"size_bytes": size_bytes, "ranks": ranks, "alpha_s": alpha_s, "bytes_per_s_one_way": bytes_per_s_one_way}
    chunks = None
    if is_pipelined(op=op, algorithm=algorithm):
        chunks = optimal_chunks(op=op, algorithm=algorithm, **network) if alpha_s else 1  # type: ignore[arg-type]
    time = collective_time(op=op, algorithm=algorithm, chunks=chunks, **network)  # type: ignore[arg-type]
    bound = lower_bound(op=op, **network)  # type: ignore[arg-type]
    factor = bus_factor(op=op, ranks=ranks)
    rate, total, algbw = plain(bytes_per_s_one_way), plain(time.total_s), time.algbw_bytes_per_s
    lines = [
        Line(
            name="latency",
            formula="steps × α",
            numbers=f"{time.steps} × {plain(alpha_s)}",
            value=time.latency_s,
            unit="s",
        ),
        Line(
            name="bandwidth",
            formula="bytes one after the other / B",
            numbers=f"{plain(time.bandwidth_s * bytes_per_s_one_way)} / {rate}",
            value=time.bandwidth_s,
            unit="s",
        ),
        Line(
            name="time",
            formula="latency + bandwidth",
            numbers=f"{plain(time.latency_s)} + {plain(time.bandwidth_s)}",
            value=time.total_s,
            unit="s",
        ),
    ]
    if time.total_s:
        lines += [
            Line(name="algbw", formula="S / time", numbers=f"{plain(size_bytes)} / {total}", value=algbw, unit="B/s"),
            Line(
                name="busbw",
                formula="algbw × bus factor",
                numbers=f"{plain(algbw)} × {plain(factor)}",
                value=time.busbw_bytes_per_s,
                unit="B/s",
            ),
        ]
    bounds = f"max({plain(bound.latency_s)}, {plain(bound.bandwidth_s)})"
    fewest = "1" if op == "send_recv" else "⌈log2 n⌉"
    lines.append(
        Line(
            name="lower bound",
            formula=f"max of {fewest} × α and bus factor × S / B",
            numbers=bounds,
            value=bound.at_least_s,
            unit="s",
        )
    )
    return Working(
        title=f"{op} among {units.counted(ranks, 'rank')}, {algorithm}",
        inputs={
            "S": f"{fmt(size_bytes, 'B')}: {SIZE_MEANS[op]}",
            "link": f"{fmt(bytes_per_s_one_way, 'B/s')} one way ({link})",
            "α": f"{fmt(alpha_s, 's')} per step",
            "steps": f"{time.steps}" + (f", in {time.chunks} chunks (the fastest number)" if chunks else ""),
            "sent": f"{fmt(time.sent_bytes_per_rank, 'B')} by the busiest rank",
        },
        lines=tuple(lines),
        conclusion=(
            f"{fmt(time.total_s, 's')}; no algorithm takes less than {fmt(bound.at_least_s, 's')} on these links."
        ),
        assumes=(
            "all ranks and links are equal and nothing else uses them",
            "a link carries its full rate in each direction at once",
            "adding numbers costs nothing; a tree hands the sum down after it has all of it",
        ),
        sources=SOURCES,
        data={"sent_bytes_per_rank": time.sent_bytes_per_rank, "lower_bound_s": bound.at_least_s},
    )


def from_flags(given: argparse.Namespace) -> Working:
    """The collective that the flags ask for."""
    if bool(given.link) == bool(given.bandwidth):
        both = ", and not both" if given.link else ""
        raise ValueError(f"give the link by name (--link nvlink-4) or its one-way rate (--bandwidth 450GB/s){both}")
    link = part_named("link", given.link, given.catalog) if given.link else None
    return working(
        op=given.op,
        algorithm=given.algorithm or algorithms(given.op)[0],
        size_bytes=quantity(given.size, "B"),
        ranks=given.ranks,
        alpha_s=quantity(given.alpha, "s"),
        bytes_per_s_one_way=link["bytes_per_s_one_way"] if link else quantity(given.bandwidth, "B/s"),
        link=link.name if link else "as given",
    )


def add_flags(command: argparse.ArgumentParser) -> None:
    """The flags of `threeloops allreduce`."""
    command.add_argument("--size", required=True, help="NCCL's S, like 14GB")
    command.add_argument("--ranks", type=whole, required=True)
    command.add_argument("--link", help="catalogue key of the link, like nvlink-4")
    command.add_argument("--bandwidth", help="one-way rate of a link, like 50GB/s")
    command.add_argument("--alpha", required=True, help="latency of one step, like 5us; 0s leaves it out")
    command.add_argument(
        "--op",
        default="all_reduce",
        help="all_reduce (default), reduce_scatter, all_gather, broadcast, reduce, all_to_all, send_recv",
    )
    command.add_argument(
        "--algorithm",
        help="ring, halving-doubling, binomial-tree, pipelined-tree, … (default: ring, or pairwise for all_to_all)",
    )
