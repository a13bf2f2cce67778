"""Printed rates: all-reduces across nodes, against what their own rows say otherwise and against bounds."""

from itertools import pairwise

import pytest

from threeloops.facts import hardware
from threeloops.facts.kernel_times import kernel_table
from threeloops.facts.printed_rates import NodeExchange, attention_rates, matmul_rates, node_exchanges
from threeloops.training_loop.network import collectives
from threeloops.training_loop.network.measured_collectives import expected_collective
from threeloops.units import MiB

RUNS = sorted(node_exchanges().items())


@pytest.mark.parametrize(("key", "run"), RUNS)
def test_rows_rise(key: str, run: NodeExchange) -> None:
    assert list(run.sizes_bytes) == sorted({*run.sizes_bytes})
    assert len(run.seconds) == len(run.sizes_bytes)
    large = [seconds for size, seconds in zip(run.sizes_bytes, run.seconds, strict=True) if size >= MiB]
    assert all(few < many for few, many in pairwise(large))


def test_printed_columns_agree_with_each_other() -> None:
    """The log prints time and busbw, the other source busbw alone and one time in words: 4 GiB in 22.05 ms."""
    log, table = node_exchanges()["a3-mega"], node_exchanges()["p6-b200"]
    last = collectives.busbw_bytes_per_s(
        op="all_reduce", ranks=log.ranks, size_bytes=log.sizes_bytes[-1], seconds=log.seconds[-1]
    )
    assert last == pytest.approx(338.82e9, rel=1e-4)
    assert dict(zip(table.sizes_bytes, table.seconds, strict=True))[4 * 2**30] == pytest.approx(22.05e-3, rel=1e-3)
    assert all(abs(one / other - 1) < 0.21 for one, other in zip(log.seconds, log.in_place_s, strict=True))


@pytest.mark.parametrize(("key", "run"), RUNS)
def test_no_card_beats_its_rate_and_at_the_end_phases_overlap(key: str, run: NodeExchange) -> None:
    """A run of large tensors is slower than its cards and quicker than its three phases in a row."""
    rows = list(zip(run.sizes_bytes, run.seconds, strict=True))
    for size, seconds in rows:
        carried = collectives.card_bytes_per_s(
            size_bytes=size, nodes=run.nodes, ranks_per_node=run.gpus_of_node, seconds=seconds
        )
        assert carried < run.card_bytes_per_s
    size, seconds = rows[-1]
    phases = collectives.hierarchical_all_reduce(
        size_bytes=size,
        nodes=run.nodes,
        ranks_per_node=run.gpus_of_node,
        intra_alpha_s=0,
        intra_bytes_per_s_one_way=hardware.part(run.part)["link_bytes_per_s_one_way"],
        inter_alpha_s=0,
        inter_bytes_per_s_one_way_per_rank=run.card_bytes_per_s,
        inter_algorithm="ring",
    )
    assert phases.inter_s < seconds < phases.total_s


@pytest.mark.parametrize(("key", "run"), RUNS)
def test_leaving_the_node_costs_time(key: str, run: NodeExchange) -> None:
    """Against the same GPUs inside a node, which other people timed."""
    assert kernel_table(run.part, "all_reduce", "bf16").measured("ranks")[-1] == run.gpus_of_node
    for size, seconds in zip(run.sizes_bytes, run.seconds, strict=True):
        inside = expected_collective(run.part, op="all_reduce", ranks=run.gpus_of_node, size_bytes=size)
        assert seconds > inside.seconds


def test_an_unknown_kernel_is_named() -> None:
    with pytest.raises(ValueError, match="triton-2023"):
        attention_rates("triton")


def test_deepgemm_s_own_columns_agree() -> None:
    """Its bytes per second are those of both operands in 8 bits and the result in 16, in the time of its FLOP/s."""
    (rates,) = matmul_rates()
    for (m, n, k), seconds in rates.seconds:
        printed = next(bytes_per_s for *shape, _, bytes_per_s in rates.rows if tuple(shape) == (m, n, k))
        assert (m * k + k * n + 2 * m * n) / seconds == pytest.approx(printed, rel=0.01)
