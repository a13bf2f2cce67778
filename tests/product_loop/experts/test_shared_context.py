"""A context on several ranks: what is exchanged, counted while the split result comes out as the whole one."""

import numpy as np
import pytest

from threeloops.models import catalogue
from threeloops.product_loop import kv_cache
from threeloops.product_loop.experts.shared_context import context_exchange_bytes
from threeloops.simulate.product_loop.experts.split_latents import attend


@pytest.mark.parametrize(("heads", "ranks"), [(8, 1), (8, 2), (16, 4), (16, 8)])
def test_what_is_sent_is_what_the_formula_says_and_the_result_is_the_same(heads: int, ranks: int) -> None:
    generator = np.random.default_rng(ranks)
    queries, latents = generator.normal(size=(heads, 12)), generator.normal(size=(40, 12))
    whole, _, _ = attend(queries, latents, ranks=1, value_width=8)
    split, numbers, logs = attend(queries, latents, ranks=ranks, value_width=8)
    assert split == pytest.approx(whole)
    told = context_exchange_bytes(heads_per_rank=heads // ranks, query_width=12, value_width=8, dcp=ranks)
    assert told == 2 * numbers + 4 * logs


@pytest.mark.parametrize(
    ("model", "tp", "copies"), [("deepseek-v3", 8, 8), ("kimi-k2", 16, 16), ("qwen3-235b-a22b", 8, 2)]
)
def test_copies_are_those_of_vllms_cases(model: str, tp: int, copies: int) -> None:
    asked = {"tokens": 4096, "batch": 1, "tp": tp, "bytes_per_element": 2}
    plain = kv_cache.per_rank(catalogue.model(model), **asked)
    assert plain.replication == copies
    assert kv_cache.per_rank(catalogue.model(model), **asked, dcp=copies).replication == 1


def test_refusals() -> None:
    with pytest.raises(ValueError, match="dcp"):
        context_exchange_bytes(heads_per_rank=16, query_width=576, value_width=512, dcp=0)
