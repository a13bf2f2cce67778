"""Bytes that gloo processes really send, held against the formulas; and the counter held against a connection whose
bytes are known.
"""

import socket
import sys

import pytest

from threeloops.measure.processes.wire import OPS, collective_traffic, written_bytes
from threeloops.measure.training_loop import data_parallel
from threeloops.measure.training_loop.links import all_reduce_seconds, fitted_link
from threeloops.simulate.training_loop.collectives import simulated
from threeloops.training_loop.network.collectives import bus_factor, collective_time
from threeloops.training_loop.network.traffic import data_parallel_traffic
from threeloops.units import KiB, MiB

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel counters are Linux's")
RANKS, SIZE_BYTES = 5, 5 * MiB
HEADERS = 0.005  # gloo's message headers, as a share of S: 48 bytes each


@pytest.fixture(scope="module")
def traffic():
    return collective_traffic(*OPS, ranks=RANKS, size_bytes=SIZE_BYTES)


@pytest.fixture(scope="module")
def training():
    return data_parallel.data_parallel_wire(width=240, num_layers=4, ranks=3)


@linux
def test_the_counter_is_exact_on_a_known_connection():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as sender:
        receiver, _ = server.accept()
        with receiver:
            assert (written_bytes(sender), written_bytes(receiver)) == (0, 0)
            sender.sendall(b"x" * 12_345)
            assert (written_bytes(sender), written_bytes(receiver)) == (12_345, 0)
            sender.setblocking(False)
            queued = 0
            try:
                while True:  # until the buffers of both ends are full: what waits in them counts as written
                    queued += sender.send(b"y" * 100_000)
            except BlockingIOError:
                pass
            assert queued > 100_000
            assert written_bytes(sender) == 12_345 + queued


@linux
@pytest.mark.parametrize("op", ["all_reduce", "all_gather"])
def test_gloo_rings_send_what_the_formula_says(traffic, op):
    predicted = collective_time(
        op=op, algorithm="ring", size_bytes=SIZE_BYTES, ranks=RANKS, alpha_s=0, bytes_per_s_one_way=1
    ).sent_bytes_per_rank
    for sent in traffic[op].sent_bytes_per_rank:
        assert predicted <= sent <= predicted + HEADERS * SIZE_BYTES
    # each rank has one neighbour to which it sends all but headers
    for source, row in enumerate(traffic[op].sent_bytes):
        assert row[source] == 0
        assert max(row) >= predicted
        assert sum(row) - max(row) < HEADERS * SIZE_BYTES


@linux
def test_gloo_reduce_scatter_sends_as_much_as_an_all_reduce(traffic):
    due = bus_factor(op="reduce_scatter", ranks=RANKS) * SIZE_BYTES
    for sent in traffic["reduce_scatter"].sent_bytes_per_rank:
        assert 2 * due <= sent <= 2 * due + HEADERS * SIZE_BYTES


@linux
def test_in_gloos_reduce_every_rank_but_the_root_sends_the_vector_once(traffic):
    predicted = collective_time(
        op="reduce", algorithm="ring", size_bytes=SIZE_BYTES, ranks=RANKS, alpha_s=0, bytes_per_s_one_way=1, chunks=1
    )
    root, *others = traffic["reduce"].sent_bytes_per_rank
    for sent in others:
        assert predicted.sent_bytes_per_rank <= sent <= predicted.sent_bytes_per_rank + HEADERS * SIZE_BYTES
    # gloo reduces and scatters on a ring, in which the root takes part, and then collects the pieces at the root.
    assert root / SIZE_BYTES == pytest.approx((RANKS - 1) / RANKS, abs=HEADERS)


@linux
def test_gloo_sends_a_vector_to_the_neighbour_and_nothing_elsewhere(traffic):
    predicted = collective_time(
        op="send_recv", algorithm="direct", size_bytes=SIZE_BYTES, ranks=RANKS, alpha_s=0, bytes_per_s_one_way=1
    )
    for source, row in enumerate(traffic["send_recv"].sent_bytes):
        assert row[(source + 1) % RANKS] == pytest.approx(predicted.sent_bytes_per_rank, rel=HEADERS)
        assert sum(row) - row[(source + 1) % RANKS] < HEADERS * SIZE_BYTES


@linux
def test_gloo_broadcast_is_a_binomial_tree(traffic):
    run = simulated(op="broadcast", algorithm="binomial-tree", ranks=RANKS, elements=60)
    share = [sent / (60 * 8) for sent in run.sent_bytes]
    assert [sent / SIZE_BYTES for sent in traffic["broadcast"].sent_bytes_per_rank] == [
        pytest.approx(x, abs=HEADERS) for x in share
    ]
    assert traffic["broadcast"].total_bytes == pytest.approx((RANKS - 1) * SIZE_BYTES, rel=HEADERS)


@linux
def test_gloo_all_to_all_sends_a_share_on_every_link(traffic):
    for source, row in enumerate(traffic["all_to_all"].sent_bytes):
        assert all(
            sent == pytest.approx(SIZE_BYTES / RANKS, rel=HEADERS)
            for destination, sent in enumerate(row)
            if destination != source
        )


@linux
def test_a_ddp_step_sends_the_gradients_twice_over(training):
    size_bytes = data_parallel.model_bytes(width=240, num_layers=4)
    predicted = data_parallel_traffic(
        zero_stage=0, num_parameters=size_bytes / 4, dp=3, bytes_per_gradient=4, bytes_per_parameter=4
    )
    for sent in training["ddp"].sent_bytes_per_rank:
        assert sent == pytest.approx(predicted.total_bytes, rel=0.02)


@linux
@pytest.mark.parametrize(("name", "reshard"), [("fsdp", True), ("fsdp-kept", False)])
def test_an_fsdp_step_sends_stage_3_with_gloos_doubled_reduce_scatter(training, name, reshard):
    size_bytes = data_parallel.model_bytes(width=240, num_layers=4)
    predicted = data_parallel_traffic(
        zero_stage=3,
        num_parameters=size_bytes / 4,
        dp=3,
        bytes_per_gradient=4,
        bytes_per_parameter=4,
        reshard_after_forward=reshard,
    )
    for sent in training[name].sent_bytes_per_rank:
        assert sent == pytest.approx(predicted.parameter_bytes + 2 * predicted.gradient_bytes, rel=0.02)


def test_a_fit_finds_the_link_that_a_simulated_ring_ran_on():
    elements = (60, 600, 60_000)
    seconds = [
        simulated(op="all_reduce", algorithm="ring", ranks=5, elements=n).seconds(alpha_s=3e-5, bytes_per_s_one_way=2e9)
        for n in elements
    ]
    link = fitted_link([8 * n for n in elements], seconds, ranks=5)
    assert (link.alpha_s, link.bytes_per_s_one_way) == (pytest.approx(3e-5), pytest.approx(2e9))


def test_a_fit_needs_times_that_grow():
    with pytest.raises(ValueError, match="must grow from the smallest to the largest"):
        fitted_link([4096, 8192], [2e-3, 1e-3], ranks=2)
    # n = 2: S bytes go through a link
    assert fitted_link([4096, 8192], [1e-3, 1.5e-3], ranks=2).bytes_per_s_one_way == pytest.approx(4096 / 0.5e-3)


@pytest.mark.clock("two runs on the wall clock")
def test_a_large_all_reduce_takes_longer_than_a_small_one():
    # 32 MiB through a loopback of some GB/s take milliseconds; 4 KiB take long only while something else has the
    # processor, so the quickest of three counts.
    small, large = zip(*(all_reduce_seconds([4 * KiB, 32 * MiB], ranks=2, repeats=3) for _ in range(3)), strict=True)
    assert min(large) > 2 * min(small)


def test_refusals(monkeypatch):
    with pytest.raises(ValueError, match="op='allreduce' is not known; did you mean 'all_reduce'"):
        collective_traffic("allreduce", ranks=3, size_bytes=12)
    with pytest.raises(ValueError, match=r"size_bytes=1000 must be a multiple of 4 \* ranks = 12; try 1008"):
        collective_traffic("all_reduce", ranks=3, size_bytes=1000)
    with pytest.raises(ValueError, match="ranks=1 must be a whole number of at least 2"):
        collective_traffic("all_reduce", ranks=1, size_bytes=12)
    with pytest.raises(ValueError, match="ranks=7 must divide width=240"):
        data_parallel.data_parallel_wire(width=240, num_layers=1, ranks=7)
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ValueError, match="sys.platform='darwin' must be linux"):
        collective_traffic("all_reduce", ranks=3, size_bytes=12)
