"""Partial recompute: limits, a share by hand, and names that exist."""

from dataclasses import replace

import pytest

from threeloops.models import catalogue
from threeloops.training_loop.parallelism import published_layouts
from threeloops.training_loop.parallelism.partial_recompute import DEEPSEEK_V3, Again, kept_activation_share, time_share

MODEL = catalogue.model("deepseek-v3")
ROW = published_layouts.published("deepseek-v3")
RUN = {"sequence": 4096, "causal": "half", "cluster": ROW.cluster}


def test_all_that_is_listed_counts():
    time, kept = time_share(MODEL, DEEPSEEK_V3, **RUN), kept_activation_share(MODEL, DEEPSEEK_V3, sequence=4096)
    for name in set(DEEPSEEK_V3.operations):
        less = replace(DEEPSEEK_V3, operations=tuple(one for one in DEEPSEEK_V3.operations if one != name))
        assert time_share(MODEL, less, **RUN) < time, name
    for name in set(DEEPSEEK_V3.tensors):
        less = replace(DEEPSEEK_V3, tensors=tuple(one for one in DEEPSEEK_V3.tensors if one != name))
        assert kept_activation_share(MODEL, less, sequence=4096) > kept, name


def test_tensors_count_by_their_widths():
    """Of 128 heads of 192, of their values of 128, of the queries' latent vector of 1,536."""
    widths = {"queries": sum(192 for _ in range(128)), "values": sum(128 for _ in range(128)), "query latent": 1536}
    left_out = {
        name: 1 - kept_activation_share(MODEL, Again(operations=(), tensors=(name,)), sequence=4096) for name in widths
    }
    whole = left_out["queries"] / widths["queries"]
    assert {name: share / whole for name, share in left_out.items()} == pytest.approx(widths)


def test_nothing_dropped_keeps_all():
    assert kept_activation_share(MODEL, Again(operations=(), tensors=()), sequence=4096) == 1


def test_the_up_projections_have_the_share_that_their_weights_have():
    fast = replace(ROW.cluster, memory_bytes_per_s=1e30, attention_flops_per_s=1e30)  # only products take time
    chosen = Again(operations=("query_up_projection", "kv_up_projection"), tensors=())
    ups = 1536 * 128 * 192 + 512 * 128 * 256
    rest = 7168 * (1536 + 576) + 128 * 128 * 7168
    dense, sparse = 3 * 7168 * 18432, 9 * 3 * 7168 * 2048 + 7168 * 256
    by_hand = 61 * ups / (61 * (ups + rest) + 3 * dense + 58 * sparse)
    share = time_share(MODEL, chosen, sequence=4096, causal="half", cluster=fast)
    assert share == pytest.approx(by_hand)


def test_refusals():
    with pytest.raises(ValueError, match="none of"):
        time_share(MODEL, Again(operations=("washing_up",), tensors=()), **RUN)
