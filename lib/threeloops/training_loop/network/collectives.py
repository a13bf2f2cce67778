"""Collectives: how long n ranks take to exchange S bytes, by the α–β model, and how the result is quoted as
bandwidth.

Every step costs `alpha_s` plus the bytes of its longest message over the link's one-way rate. Each rank has one port:
in one step it sends at most one message and receives at most one, both at full rate. Size is NCCL's S; SIZE_MEANS
says whose buffer that is.

>>> t = collective_time(
...     op="all_reduce", algorithm="ring", size_bytes=1e9, ranks=8, alpha_s=0, bytes_per_s_one_way=450e9
... )
>>> t.steps, round(t.total_s * 1e3, 3), round(t.busbw_bytes_per_s / 1e9)
(14, 3.889, 450)

Source: Thakur, Rabenseifner, Gropp, Optimization of Collective Communication Operations in MPICH, IJHPCA 19(1), 2005,
        doi:10.1177/1094342005051521;
NVIDIA nccl-tests, doc/PERFORMANCE.md (algbw and busbw)
"""

import math
from dataclasses import dataclass

from threeloops import checks
from threeloops.training_loop.network.collective_algorithms import plan

SIZE_MEANS = {
    "all_reduce": "the vector that each rank holds, before and after",
    "reduce_scatter": "the whole input of one rank; each rank keeps 1/n of it, summed",
    "all_gather": "the whole output of one rank; each rank brings 1/n of it",
    "broadcast": "the vector of the root",
    "reduce": "the vector that each rank brings; the root keeps the sum",
    "all_to_all": "the whole buffer of one rank; 1/n of it goes to each rank (1/n stays)",
    "send_recv": "the buffer that each rank sends to one rank, while it receives as much from one",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTime:
    """The time of one collective in its parts, and what was counted."""

    op: str
    algorithm: str
    ranks: int
    size_bytes: float  # NCCL's S: see size_means
    chunks: int  # pieces that a pipelined algorithm cuts S into; 1 elsewhere
    steps: int
    latency_s: float  # steps * alpha
    bandwidth_s: float  # bytes one after the other, over the one-way rate of a link
    sent_bytes_per_rank: float  # by the rank that sends most
    startup_s: float = 0.0  # once per call, whatever its steps

    @property
    def total_s(self) -> float:
        return self.startup_s + self.latency_s + self.bandwidth_s

    @property
    def size_means(self) -> str:
        """Whose buffer size_bytes is."""
        return SIZE_MEANS[self.op]

    @property
    def algbw_bytes_per_s(self) -> float:
        """S over time; infinite where nothing takes time (one rank)."""
        return self.size_bytes / self.total_s if self.total_s else math.inf

    @property
    def busbw_bytes_per_s(self) -> float:
        """NCCL's bus bandwidth: comparable with the rate of a link, whatever the number of ranks."""
        return (
            busbw_bytes_per_s(op=self.op, ranks=self.ranks, size_bytes=self.size_bytes, seconds=self.total_s)
            if self.total_s
            else math.inf
        )


def collective_time(
    *,
    op: str,
    algorithm: str,
    size_bytes: float,
    ranks: int,
    alpha_s: float,
    bytes_per_s_one_way: float,
    chunks: int | None = None,
    startup_s: float = 0.0,
) -> CollectiveTime:
    """Seconds for one collective among equal ranks on equal links, as latency plus bandwidth, and what the call
    itself costs if that is told.

    Formula:  ring reduce-scatter, ring all-gather, pairwise all-to-all: (n - 1) * (alpha + S / (n * B)); ring
              all-reduce: twice that. halving-doubling: log2(n) * alpha + (n - 1) / n * S / B for each of its two
              halves; an all-reduce among other than 2^k ranks runs on the 2^k below n, and adds 2 * (alpha + S / B)
              for the others to join and to be told. binomial-tree: ceil(log2(n)) * (alpha + S / B) for a broadcast,
              twice that for an all-reduce. Called binary tree where only the log2(n) steps matter. ring broadcast in
              k chunks: (n - 2 + k) * (alpha + S / (k * B)). reduce: what the broadcast by the same algorithm takes,
              which it is backwards. send_recv: alpha + S / B pipelined-tree in k chunks, n > 2: (depth + 2 * (k - 1))
              * (alpha + S / (k * B)), depth as in tree_depth_steps; twice that for an all-reduce. double-tree in k
              chunks: at most (k + 2 * floor(log2(n - 1))) * (alpha + S / (k * B)), twice that for an all-reduce; a
              simulated one is at most one step faster each way. NCCL's tree is of this kind. through-root: (n - 1) *
              (alpha + S / B), twice that for an all-reduce all of them: + startup_s, once per call (launching the
              kernel, agreeing to start), unless there is one rank and nothing to exchange
    Units:    size_bytes as in SIZE_MEANS; bytes_per_s_one_way of one rank's link, one direction
    Assumes:  n divides S (else each step can be one element longer), sums cost nothing, no step waits for another's
              link; startup_s is 0 unless told: the α–β model has no such term, and an alpha fitted without one holds
              a part of it
    Raises:   ValueError for an operation or algorithm that is not known, for a halving-doubling reduce-scatter or
              all-gather among other than 2^k ranks, for chunks where nothing is pipelined, and for none where
              something is
    Source:   Thakur et al., 2005, section 4 (ring, binomial tree, halving-doubling, pairwise); MPICH's MPI_Allreduce
              for n not a power of two; Patarasuk, Yuan, JPDC 69(2), 2009, doi:10.1016/j.jpdc.2008.09.002 (ring
              all-reduce); Sanders, Speck, Träff, Parallel Computing 35(12), 2009, pp. 581-594 (pipelined and double
              trees); NVIDIA NCCL, src/graph/tuning.cc (baseLat once, hwLat per step)
    Counted:  simulate.training_loop.collectives.simulated
    Measured: measure.processes.wire.collective_traffic

    >>> collective_time(
    ...     op="broadcast", algorithm="ring", size_bytes=12e6, ranks=4, alpha_s=1e-6, bytes_per_s_one_way=1e9, chunks=6
    ... ).steps
    8
    """
    checks.count(ranks=ranks)
    checks.positive(size_bytes=size_bytes, bytes_per_s_one_way=bytes_per_s_one_way)
    checks.non_negative(alpha_s=alpha_s, startup_s=startup_s)
    chosen = plan(op=op, algorithm=algorithm, ranks=ranks, chunks=chunks)
    return CollectiveTime(
        op=op,
        algorithm=algorithm,
        ranks=ranks,
        size_bytes=size_bytes,
        chunks=chunks or 1,
        steps=chosen.steps,
        latency_s=chosen.steps * alpha_s,
        bandwidth_s=chosen.serial * size_bytes / bytes_per_s_one_way,
        sent_bytes_per_rank=chosen.sent * size_bytes,
        startup_s=startup_s if ranks > 1 else 0.0,
    )


def bus_factor(*, op: str, ranks: int) -> float:
    """What turns NCCL's algbw into its busbw; times S, the bytes that each rank must send at least (of a broadcast:
    the root; of a reduce: all others).

    Formula:  all-reduce 2(n - 1)/n; reduce-scatter, all-gather, all-to-all (n - 1)/n; broadcast, reduce, send_recv 1
    Assumes:  no reduction inside the switches (NVLink SHARP needs fewer bytes)
    Source:   NVIDIA nccl-tests, doc/PERFORMANCE.md
    Measured: measure.processes.wire.collective_traffic

    >>> bus_factor(op="all_reduce", ranks=8), bus_factor(op="all_gather", ranks=8), bus_factor(op="broadcast", ranks=8)
    (1.75, 0.875, 1.0)
    """
    checks.one_of(SIZE_MEANS, op=op)
    checks.count(ranks=ranks)
    once = (ranks - 1) / ranks
    return {"all_reduce": 2 * once, "broadcast": 1.0, "reduce": 1.0, "send_recv": 1.0}.get(op, once)


def algbw_bytes_per_s(*, size_bytes: float, seconds: float) -> float:
    """NCCL's algorithm bandwidth: S / t."""
    checks.positive(size_bytes=size_bytes, seconds=seconds)
    return size_bytes / seconds


def busbw_bytes_per_s(*, op: str, ranks: int, size_bytes: float, seconds: float) -> float:
    """NCCL's bus bandwidth: algbw times the bus factor.

    >>> round(busbw_bytes_per_s(op="all_reduce", ranks=8, size_bytes=1e9, seconds=3.889e-3) / 1e9)
    450
    """
    return algbw_bytes_per_s(size_bytes=size_bytes, seconds=seconds) * bus_factor(op=op, ranks=ranks)


@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchicalTime:
    """An all-reduce in three phases: two inside the nodes, one between them."""

    size_bytes: float  # the vector that each rank holds
    nodes: int
    ranks_per_node: int
    reduce_scatter: CollectiveTime  # of S inside a node
    # of S / ranks_per_node between the nodes, once per rank of a node, all at the same time
    all_reduce: CollectiveTime
    all_gather: CollectiveTime  # of S inside a node

    @property
    def intra_s(self) -> float:
        return self.reduce_scatter.total_s + self.all_gather.total_s

    @property
    def inter_s(self) -> float:
        return self.all_reduce.total_s

    @property
    def total_s(self) -> float:
        return self.intra_s + self.inter_s

    @property
    def busbw_bytes_per_s(self) -> float:
        """Against the whole vector and all ranks, as nccl-tests would print it."""
        factor = bus_factor(op="all_reduce", ranks=self.nodes * self.ranks_per_node)
        return factor * self.size_bytes / self.total_s if self.total_s else math.inf


def hierarchical_all_reduce(
    *,
    size_bytes: float,
    nodes: int,
    ranks_per_node: int,
    intra_alpha_s: float,
    intra_bytes_per_s_one_way: float,
    inter_alpha_s: float,
    inter_bytes_per_s_one_way_per_rank: float,
    inter_algorithm: str,
    inter_chunks: int | None = None,
) -> HierarchicalTime:
    """Seconds for an all-reduce over nodes of g ranks with fast links inside: each rank crosses between the nodes
    with S/g only.

    Formula:  ring reduce-scatter of S inside + all-reduce of S/g between + ring all-gather of S inside
    Units:    the inter rate is one rank's share of its node's network cards: eight 400 Gbit/s cards for eight ranks
              give 50e9, four give 25e9
    Assumes:  the g all-reduces between nodes run at once, each on its own share; the phases do not overlap
    Source:   Thakur et al., 2005 (the parts); NVIDIA nccl-tests, doc/PERFORMANCE.md (busbw)
    Counted:  simulate.training_loop.ring.hierarchical_all_reduce

    >>> t = hierarchical_all_reduce(
    ...     size_bytes=1e9,
    ...     nodes=2,
    ...     ranks_per_node=5,
    ...     intra_alpha_s=0,
    ...     intra_bytes_per_s_one_way=450e9,
    ...     inter_alpha_s=0,
    ...     inter_bytes_per_s_one_way_per_rank=50e9,
    ...     inter_algorithm="ring",
    ... )
    >>> round(t.intra_s * 1e3, 3), round(t.inter_s * 1e3, 3)
    (3.556, 4.0)
    """
    checks.count(nodes=nodes, ranks_per_node=ranks_per_node)

    def inside(op: str) -> CollectiveTime:
        return collective_time(
            op=op,
            algorithm="ring",
            size_bytes=size_bytes,
            ranks=ranks_per_node,
            alpha_s=intra_alpha_s,
            bytes_per_s_one_way=intra_bytes_per_s_one_way,
        )

    between = collective_time(
        op="all_reduce",
        algorithm=inter_algorithm,
        size_bytes=size_bytes / ranks_per_node,
        ranks=nodes,
        alpha_s=inter_alpha_s,
        bytes_per_s_one_way=inter_bytes_per_s_one_way_per_rank,
        chunks=inter_chunks,
    )
    return HierarchicalTime(
        size_bytes=size_bytes,
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        reduce_scatter=inside("reduce_scatter"),
        all_reduce=between,
        all_gather=inside("all_gather"),
    )


def card_bytes_per_s(*, size_bytes: float, nodes: int, ranks_per_node: int, seconds: float) -> float:
    """What each rank's network card carried one way in an all-reduce across nodes, on average over its time.

    Formula:  2 * (nodes - 1) / nodes * S / ranks_per_node / t, which is busbw * (nodes - 1) / (ranks - 1)
    Units:    size_bytes: NCCL's S, the tensor of one rank
    Assumes:  sums inside the nodes first, so that each rank exchanges one share of S with its like on other nodes; a
              card may have carried them in less than the whole time
    Source:   S. Bekman, Machine Learning Engineering, network, 2026
    Counted:  simulate.training_loop.ring.hierarchical_all_reduce

    >>> card_bytes_per_s(size_bytes=8e9, nodes=2, ranks_per_node=4, seconds=0.1) / 1e9
    20.0
    """
    checks.count(nodes=nodes, ranks_per_node=ranks_per_node)
    checks.positive(size_bytes=size_bytes, seconds=seconds)
    return bus_factor(op="all_reduce", ranks=nodes) * size_bytes / ranks_per_node / seconds
