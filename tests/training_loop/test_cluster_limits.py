"""What a cluster allows: each closed form against the drill that counts it, its edges, and what it refuses."""

import random
import re

import pytest

from threeloops.drills.parallel_layout import cluster_limits as drills
from threeloops.training_loop.parallelism import cluster_limits as limits

LINKS = {"flops_per_s": 1e15, "intra_bytes_per_s_one_way": 1e15, "inter_bytes_per_s_one_way_per_rank": 50e9}


@pytest.mark.parametrize("drill", drills.DRILLS, ids=lambda drill: drill.key)
def test_a_limit_is_what_is_counted(drill) -> None:
    for seed in range(5):
        p = drill.small(random.Random(seed))
        assert drill.derive(p).value == pytest.approx(drill.count(p), rel=1e-9)


def test_the_level_that_takes_longer_decides() -> None:
    def tokens(inside: float, between: float, nodes: int) -> float:
        return limits.data_parallel_tokens(
            flops_per_s=8e12,
            intra_bytes_per_s_one_way=inside,
            inter_bytes_per_s_one_way_per_rank=between,
            nodes=nodes,
            ranks_per_node=4,
            bytes_per_gradient=2,
        )

    assert tokens(1e9, 1e9, 1) == pytest.approx(6000)  # 8e12 / 1e9 * 3/4; nothing between the nodes
    assert tokens(1e9, 1e8, 5) == pytest.approx(16_000)  # 8e12 / 1e8 * 4/5 / 4
    assert tokens(1e8, 1e9, 5) == pytest.approx(60_000)


def test_experts_and_wide_gradients_ask_for_more_tokens() -> None:
    base = limits.data_parallel_tokens(**LINKS, nodes=9, ranks_per_node=1, bytes_per_gradient=2)
    for more, factor in (
        ({"num_experts": 12, "top_k": 3, "bytes_per_gradient": 2}, 4),
        ({"bytes_per_gradient": 4}, 2),
    ):
        found = limits.data_parallel_tokens(**LINKS, nodes=9, ranks_per_node=1, **more)
        assert found == pytest.approx(base * factor)


def test_the_best_split_follows_the_links() -> None:
    at = {"layer_parameters": 8e8 / 3, "hidden": 1000, "tokens_per_gpu": 100}
    assert limits.best_tensor_ranks(**at, sharded_bytes_per_s=1, tensor_bytes_per_s=1) == pytest.approx(1000**0.5)
    assert limits.best_tensor_ranks(**at, sharded_bytes_per_s=1, tensor_bytes_per_s=4) == pytest.approx(4000**0.5)


def test_one_stage_has_no_bubble_and_one_rank_no_way() -> None:
    assert limits.pipeline_break_even_tokens(sharded_tokens=70, pp=1, micro_batches=3) == 70
    assert limits.pipeline_break_even_tokens(sharded_tokens=70, pp=4, micro_batches=4) == 40
    wide = {"flops_per_s": 6e12, "bytes_per_s_one_way": 1e9, "bytes_per_element": 2}
    assert limits.hiding_expert_width(**wide, ep=1, matrices=3) == 0
    assert limits.hiding_expert_width(**wide, ep=4, matrices=3) == 3000
    assert limits.hiding_expert_width(**wide, ep=4, matrices=2) == 4500


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: limits.data_parallel_tokens(
                **LINKS, nodes=2, ranks_per_node=2, bytes_per_gradient=2, num_experts=4, top_k=5
            ),
            "top_k=5 must be at most num_experts=4",
        ),
        (
            lambda: limits.fewest_expert_ranks(rows=9, tokens_per_gpu=1, num_experts=4, top_k=5),
            "top_k=5 must be at most num_experts=4",
        ),
        (
            lambda: limits.data_parallel_tokens(**LINKS, nodes=0, ranks_per_node=2, bytes_per_gradient=2),
            "nodes=0 must be",
        ),
        (
            lambda: limits.most_tensor_ranks(
                layer_parameters=1, hidden=1, bytes_per_element=2, flops_per_s=0, bytes_per_s_one_way=1
            ),
            "flops_per_s=0 must be",
        ),
        (
            lambda: limits.best_tensor_ranks(
                layer_parameters=1, hidden=1, tokens_per_gpu=0, sharded_bytes_per_s=1, tensor_bytes_per_s=1
            ),
            "tokens_per_gpu=0 must be",
        ),
        (
            lambda: limits.pipeline_break_even_tokens(sharded_tokens=0, pp=2, micro_batches=2),
            "sharded_tokens=0 must be",
        ),
        (
            lambda: limits.hiding_expert_width(
                flops_per_s=1, bytes_per_s_one_way=1, ep=2, bytes_per_element=0, matrices=3
            ),
            "bytes_per_element=0 must be",
        ),
        (lambda: limits.fewest_expert_ranks(rows=0, tokens_per_gpu=1, num_experts=4, top_k=1), "rows=0 must be"),
    ],
)
def test_what_cannot_be_is_refused(call, says) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        call()
