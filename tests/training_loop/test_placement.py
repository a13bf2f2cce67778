"""Who sits where: coordinates and groups against a grid that is filled by counting, and the map that shows them."""

import itertools
import json

import pytest

from threeloops.figures import still
from threeloops.figures.training_loop import worker_map
from threeloops.training_loop.parallelism.placement import coordinates, group, nodes_of_a_group, num_gpus, stride

ORDERS = [list(order) for order in itertools.permutations((("tp", 4), ("dp", 3), ("pp", 2)))]


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: "-".join(kind for kind, _ in order))
def test_numbers_count_up_along_the_innermost_kind(order):
    names = [kind for kind, _ in order]
    counted = itertools.product(*(range(degree) for _, degree in reversed(order)))  # the last of these turns fastest
    for gpu, places in enumerate(counted):
        assert coordinates(gpu, order=order) == dict(zip(names, reversed(places), strict=True))
    for kind, degree in order:
        groups = {tuple(group(gpu, kind=kind, order=order)) for gpu in range(24)}
        assert sorted(itertools.chain(*groups)) == list(range(24))  # every GPU is in one group of each kind
        assert {len(members) for members in groups} == {degree}
        assert all(
            later - earlier == stride(kind=kind, order=order)
            for members in groups
            for earlier, later in itertools.pairwise(members)
        )


def test_eight_nodes_of_four():
    megatron, reverse = [("tp", 4), ("dp", 2), ("pp", 4)], [("pp", 4), ("dp", 2), ("tp", 4)]
    assert [nodes_of_a_group(kind=kind, order=megatron, gpus_per_node=4) for kind in ("tp", "dp", "pp")] == [1, 2, 4]
    assert [nodes_of_a_group(kind=kind, order=reverse, gpus_per_node=4) for kind in ("tp", "dp", "pp")] == [4, 2, 1]


def test_the_map_shows_every_gpu_in_its_node():
    order = [("tp", 4), ("dp", 2), ("pp", 4)]
    figure = worker_map.worker_map(order, gpus_per_node=4, title="A finding", caption="What to see.")
    frames, gpus, texts = (layer["data"]["values"] for layer in figure.body["layer"])
    assert len(frames) == 8
    for gpu, box in enumerate(gpus):
        places, node = coordinates(gpu, order=order), frames[gpu // 4]
        assert box["letters"] == f"D{places['dp']} P{places['pp']} T{places['tp']}"
        assert node["x"] < box["x"] < box["x2"] < node["x2"]
        assert node["y"] < box["y"] < box["y2"] < node["y2"]
    assert len(texts) == 8 + 2 * 32
    assert "Node 3: stage 1, replica 1, shards 0 to 3" in figure.alt
    assert json.dumps(figure.spec)
    assert "D1 P3 T3" in still.svg(figure.spec)


def test_refusals():
    with pytest.raises(ValueError, match="gpu=24 must be less than 24"):
        coordinates(24, order=ORDERS[0])
    with pytest.raises(ValueError, match="name each kind once"):
        num_gpus(order=[("tp", 2), ("tp", 4)])
    with pytest.raises(ValueError, match="gpus_per_node=5 must divide GPUs=24"):
        worker_map.worker_map(ORDERS[0], gpus_per_node=5, title="a", caption="b")
    with pytest.raises(ValueError, match="pp=6 must not exceed 5"):
        worker_map.worker_map([("tp", 1), ("dp", 1), ("pp", 6)], gpus_per_node=2, title="a", caption="b")
