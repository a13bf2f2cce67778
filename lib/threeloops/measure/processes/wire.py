"""Wire: the bytes that gloo processes really send, read from the kernel's own counters of their TCP connections.

Every rank counts what it has written into each connection, before and after the work; the two ends of a connection
are matched by their addresses, so the result says who sent how much to whom. Other processes' traffic does not enter.
Linux only.
"""

import os
import socket
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from threeloops import checks
from threeloops.measure.processes.ranks import run_ranks

OPS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all", "reduce", "send_recv")
FLOAT_BYTES = 4

# Offsets in the kernel's struct tcp_info (include/uapi/linux/tcp.h); fields are only ever added at its end.
# bytes_sent came with Linux 4.19.
_NOTSENT_BYTES, _BYTES_SENT, _BYTES_RETRANS, _LENGTH = 144, 200, 208, 216

Connection = tuple[tuple[str, int], tuple[str, int]]  # own address and port, peer's address and port
Step = Callable[[], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class WireTraffic:
    """What one piece of work put on the wire, gloo's message headers included."""

    sent_bytes: tuple[tuple[int, ...], ...]  # [source][destination]

    @property
    def ranks(self) -> int:
        return len(self.sent_bytes)

    @property
    def sent_bytes_per_rank(self) -> tuple[int, ...]:
        return tuple(sum(row) for row in self.sent_bytes)

    @property
    def total_bytes(self) -> int:
        return sum(self.sent_bytes_per_rank)


class UnsupportedSystem(ValueError):
    """This operating system does not tell what is asked; a chapter then shows its recorded run (stand_in)."""


def require_linux() -> None:
    """Refuse, in one sentence, where the kernel has no such counters."""
    if not sys.platform.startswith("linux"):
        raise UnsupportedSystem(
            f"sys.platform={sys.platform!r} must be linux: the bytes sent are in Linux's TCP_INFO; use the recorded"
            " results here"
        )


def written_bytes(connection: socket.socket) -> int:
    """Bytes that this end has ever written into a TCP connection: sent (repeats taken off), or still queued."""
    require_linux()
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512)
    if len(info) < _LENGTH:
        raise ValueError(
            f"TCP_INFO has {len(info)} bytes and must have {_LENGTH}: bytes_sent needs Linux 4.19 or newer"
        )
    (queued,) = struct.unpack_from("=I", info, _NOTSENT_BYTES)
    (sent,) = struct.unpack_from("=Q", info, _BYTES_SENT)
    (again,) = struct.unpack_from("=Q", info, _BYTES_RETRANS)
    return int(sent - again + queued)


def open_connections() -> dict[Connection, int]:
    """This process's TCP connections, and the bytes written into each so far."""
    found: dict[Connection, int] = {}
    for entry in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink(f"/proc/self/fd/{entry}").startswith("socket:"):
                continue
            # The copy is closed again; the process keeps its own descriptor.
            with socket.socket(fileno=os.dup(int(entry))) as connection:
                if connection.type == socket.SOCK_STREAM and connection.family in (socket.AF_INET, socket.AF_INET6):
                    found[connection.getsockname()[:2], connection.getpeername()[:2]] = written_bytes(connection)
        except OSError:  # not connected, or closed since the folder was read
            continue
    return found


def _written(step: Step) -> dict[Connection, int]:
    """Bytes that this rank writes into each connection for one step and the barrier after it."""
    dist.barrier()
    before = open_connections()
    step()
    dist.barrier()
    return {ends: written - before.get(ends, 0) for ends, written in open_connections().items()}


def _count(work: tuple[tuple[Callable[..., Step], tuple[Any, ...]], ...]) -> list[dict[Connection, int]]:
    """On each rank: prepare, run once so that connections exist and first-time exchanges are over, then count the
    second run.
    """
    counted = []
    for prepare, arguments in work:
        step = prepare(*arguments)
        step()
        barrier = _written(lambda: None)
        counted.append({ends: written - barrier[ends] for ends, written in _written(step).items()})
    return counted


def step_traffic(
    *work: tuple[Callable[..., Step], tuple[Any, ...]], ranks: int, timeout_s: float = 60.0
) -> list[WireTraffic]:
    """The bytes of one step of each (prepare, arguments): prepare(*arguments) runs on every rank and returns the
    step, which is run twice.

    The first run is not counted. Everything is measured one after the other in one group of processes.

    Assumes:  a step waits for its own communication, and `prepare` can be imported by name
    Raises:   ValueError off Linux; RankError when a rank fails or is late
    """
    checks.count(ranks=ranks, at_least=2)
    require_linux()
    by_rank = run_ranks(_count, work, ranks=ranks, timeout_s=timeout_s)
    return [WireTraffic(sent_bytes=_matrix([counted[place] for counted in by_rank])) for place in range(len(work))]


def _matrix(by_rank: list[dict[Connection, int]]) -> tuple[tuple[int, ...], ...]:
    """Connections as [source][destination]: my peer is the rank that has the same two addresses the other way
    round.
    """
    owner = {ends: rank for rank, connections in enumerate(by_rank) for ends in connections}
    sent = [[0] * len(by_rank) for _ in by_rank]
    for (own, peer), rank in owner.items():
        if (peer, own) in owner:
            sent[rank][owner[peer, own]] += by_rank[rank][own, peer]
    return tuple(tuple(row) for row in sent)


def prepared_collective(op: str, size_bytes: int) -> Step:
    """On a rank: a step that runs one collective on float32 vectors of NCCL's size S."""
    ranks = dist.get_world_size()
    whole, other = torch.ones(size_bytes // FLOAT_BYTES), torch.empty(size_bytes // FLOAT_BYTES)
    whole_pieces, own = list(whole.chunk(ranks)), torch.empty(len(whole) // ranks)
    steps: dict[str, Step] = {
        "all_reduce": lambda: dist.all_reduce(whole),
        "reduce_scatter": lambda: dist.reduce_scatter(own, whole_pieces),
        "all_gather": lambda: dist.all_gather(whole_pieces, own),
        "broadcast": lambda: dist.broadcast(whole, src=0),
        "all_to_all": lambda: dist.all_to_all_single(other, whole),
        "reduce": lambda: dist.reduce(whole, dst=0),
        "send_recv": lambda: _pass_on(whole, other),
    }
    return steps[op]


def _pass_on(own: torch.Tensor, other: torch.Tensor) -> None:
    """Everyone's vector to the right neighbour."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    both = [dist.P2POp(dist.isend, own, (rank + 1) % ranks), dist.P2POp(dist.irecv, other, (rank - 1) % ranks)]
    for request in dist.batch_isend_irecv(both):
        request.wait()


def collective_traffic(*ops: str, ranks: int, size_bytes: int, timeout_s: float = 60.0) -> dict[str, WireTraffic]:
    """The bytes that torch's gloo backend sends for each operation on float32 vectors.

    What gloo does is what is measured: its reduce-scatter runs all-reduces, and so sends twice what it must; its
    broadcast is a binomial tree; its reduce is a reduce-scatter on a ring whose pieces are then collected at the
    root. send_recv is everyone's vector to the right neighbour.

    Units:    size_bytes is NCCL's S, as in collectives.SIZE_MEANS
    Raises:   ValueError off Linux, for an unknown operation, and for a size_bytes that does not split into n equal
              pieces of float32
    Source:   pytorch pull request 149869 (reduce_scatter for ProcessGroupGloo: one all-reduce per rank)
    """
    checks.count(ranks=ranks, at_least=2)
    checks.count(size_bytes=size_bytes)
    for op in ops:
        checks.one_of(OPS, op=op)
    step_bytes = FLOAT_BYTES * ranks
    if size_bytes % step_bytes:
        raise ValueError(
            f"size_bytes={size_bytes} must be a multiple of 4 * ranks = {step_bytes}; try"
            f" {(size_bytes // step_bytes + 1) * step_bytes}"
        )
    work = [(prepared_collective, (op, size_bytes)) for op in ops]
    return dict(zip(ops, step_traffic(*work, ranks=ranks, timeout_s=timeout_s), strict=True))
