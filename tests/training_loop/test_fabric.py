"""Networks of switches: formulas against bytes counted on every link, the wiring itself, and the map that shows
it.
"""

import itertools
import json

import pytest

from threeloops.facts import hardware
from threeloops.figures import still
from threeloops.figures.training_loop import cluster_map
from threeloops.simulate.training_loop.fabric import Fabric, all_to_all, ring
from threeloops.training_loop.network import fabric

RATES = cluster_map.Rates(nvlink=450e9, pcie=63e9, card=50e9)
SHAPES = [(2, 3), (3, 4), (4, 8), (5, 1)]


def by_node(leaves, below, spines=3):
    return Fabric(
        nodes=leaves, gpus_per_node=below, nodes_per_leaf=1, spines=spines, wiring="by-node", through_nvlink=False
    )


def counted(net, flows, *, below, taper):
    return net.seconds(
        flows, card_bytes_per_s=50.0, uplink_bytes_per_s=below * 50.0 / taper / net.spines, nvlink_bytes_per_s=450.0
    )


@pytest.mark.parametrize("taper", [1, 1.5, 2, 4])
@pytest.mark.parametrize(("leaves", "below"), SHAPES)
def test_an_all_to_all_takes_what_its_busiest_link_carries(leaves, below, taper):
    net = by_node(leaves, below)
    taken = fabric.all_to_all_s(
        size_bytes=840.0, leaves=leaves, gpus_per_leaf=below, oversubscription=taper, bytes_per_s_one_way=50.0
    )
    assert taken == pytest.approx(counted(net, all_to_all(list(range(net.gpus)), 840.0), below=below, taper=taper))


@pytest.mark.parametrize("taper", [1, 2, 4])
@pytest.mark.parametrize(("leaves", "below"), SHAPES)
def test_a_ring_pays_for_the_neighbours_that_sit_elsewhere(leaves, below, taper):
    net = by_node(leaves, below)
    in_turn = list(range(net.gpus))
    for order, crossing in ((in_turn, 1), (sorted(in_turn, key=lambda gpu: gpu % below), below)):
        taken = fabric.ring_all_reduce_s(
            size_bytes=840.0,
            leaves=leaves,
            gpus_per_leaf=below,
            oversubscription=taper,
            bytes_per_s_one_way=50.0,
            crossing_per_leaf=crossing,
        )
        assert taken == pytest.approx(counted(net, ring(order, 840.0), below=below, taper=taper))


def test_one_leaf_has_nothing_to_go_up_for():
    words = {"size_bytes": 840.0, "leaves": 1, "gpus_per_leaf": 8, "bytes_per_s_one_way": 50.0}
    assert fabric.all_to_all_s(oversubscription=4, **words) == pytest.approx(7 / 8 * 840 / 50)
    assert fabric.ring_all_reduce_s(oversubscription=4, crossing_per_leaf=8, **words) == pytest.approx(
        14 / 8 * 840 / 50
    )


@pytest.mark.parametrize("gpus", [4, 8, 12])
def test_the_worst_cut_of_a_small_tapered_network_is_the_bisection(gpus):
    # Every way to cut the GPUs in half; what crosses is bounded by the cards of one side and, if the cut runs between
    # the leaves, by the uplinks.
    half, rate, taper = gpus // 2, 50.0, 2.0
    uplink = half * rate / taper
    crossing = []
    for chosen in itertools.combinations(range(gpus), half):
        # of the chosen half, those on the first leaf; their partners may be on the same leaf
        first = sum(gpu < half for gpu in chosen)
        same_leaf = 2 * min(first, half - first)
        crossing.append(same_leaf * rate + min((half - same_leaf) * rate, uplink))
    assert fabric.bisection_bytes_per_s(num_gpus=gpus, bytes_per_s_one_way=rate, oversubscription=taper) == min(
        crossing
    )


def test_the_second_tier_of_nvlink_is_nine_times_hdr_as_announced():
    tier = hardware.part("nvl32-h100-256")
    half = fabric.bisection_bytes_per_s(
        num_gpus=256, bytes_per_s_one_way=tier["bytes_per_s_one_way"], oversubscription=2
    )
    assert 2 * half == tier["all_to_all_bytes_per_s"]
    hdr = hardware.part("infiniband-hdr")["bytes_per_s_one_way"]
    assert half / fabric.bisection_bytes_per_s(
        num_gpus=256, bytes_per_s_one_way=hdr, oversubscription=1
    ) == pytest.approx(9)


def test_rails_keep_equally_placed_gpus_on_one_leaf():
    rails = Fabric(nodes=6, gpus_per_node=4, nodes_per_leaf=6, spines=2, wiring="by-rail", through_nvlink=True)
    assert [rails.leaf(gpu) for gpu in range(8)] == [0, 1, 2, 3, 0, 1, 2, 3]
    flows = [flow for place in range(4) for flow in ring(list(range(place, 24, 4)), 100.0)]
    assert {link[0] for link in rails.load(flows)} == {"card out", "card in"}
    assert {link[0] for link in rails.load(ring([0, 1, 2, 3], 100.0))} == {"NVLink out", "NVLink in"}
    everything = rails.load(all_to_all(list(range(24)), 100.0))
    # 5 nodes x 3 other rails
    assert sum(size for link, size in everything.items() if link[0] == "up") == pytest.approx(24 * 15 * 100 / 24)


def test_no_byte_is_lost_on_the_way():
    net = by_node(3, 4)
    loads = net.load(all_to_all(list(range(12)), 120.0))
    totals = {
        kind: sum(size for link, size in loads.items() if link[0] == kind)
        for kind in ("card out", "card in", "up", "down")
    }
    assert totals["card out"] == totals["card in"] == pytest.approx(12 * 110)
    assert totals["up"] == pytest.approx(totals["down"]) == pytest.approx(12 * 80)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fabric.slowest_link({}), "at least one link"),
        (lambda: fabric.bisection_bytes_per_s(num_gpus=7, bytes_per_s_one_way=1, oversubscription=1), "halves"),
        (
            lambda: fabric.bisection_bytes_per_s(num_gpus=8, bytes_per_s_one_way=1, oversubscription=0.5),
            "oversubscription=0.5 must be at least 1",
        ),
        (
            lambda: cluster_map.cluster_map(RATES, rails=4, spines=2, way=(0, 4), title="A", caption="B"),
            "GPUs count from 0",
        ),
    ],
)
def test_refusals_say_what_would_do(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize(("way", "middle"), [((0, 0), "leaf 0"), ((1, 3), "leaf 1, a spine, leaf 3")])
def test_the_map_says_which_way_the_byte_went(way, middle):
    figure = cluster_map.cluster_map(RATES, rails=4, spines=2, way=way, title="A finding", caption="What to see.")
    json.dumps(figure.spec)
    assert f"card {way[0]}, {middle}, card {way[1]}" in figure.alt
    assert still.size(figure.png())[0] <= 720
    cables = figure.body["layer"][0]["data"]["values"]
    assert len(cables) == 2 * 4 + 4 * 2  # a card each, and every leaf on every spine
