"""Served pools: rows that can be what they say."""

from collections import Counter

from threeloops.facts import hardware
from threeloops.facts.served_pools import served_pools, served_pools_source
from threeloops.models import catalogue
from threeloops.models.parameters import model_parameters

POINTS = served_pools()
PEAKS = {"nvfp4": "fp4"}


def test_every_point_stands_once_and_names_what_the_catalogue_knows() -> None:
    assert max(Counter(POINTS).values()) == 1
    for point in POINTS:
        assert catalogue.model(point.model).name
        assert hardware.part(point.part).name
        for pool in (point.prefill, point.decode):
            assert pool.tp * pool.dp % pool.ep == 0, point


def test_no_pool_computes_more_than_its_peak() -> None:
    """Each request that goes through has its prompt computed in one pool and its answer in the other."""
    for point in POINTS:
        model = catalogue.model(point.model)
        flops = 2 * (model_parameters(model).active - 2 * model.vocab * model.hidden)
        peak = hardware.part(point.part).peak_flops_per_s(PEAKS.get(point.format, point.format))
        for tokens, pool in ((point.prompt, point.prefill), (point.answer, point.decode)):
            assert point.requests_per_s * tokens * flops < pool.gpus * peak, point


def test_the_source_says_who_and_how() -> None:
    assert "commit 095f58a51 (Apache-2.0)" in served_pools_source()
    assert "at a time" in served_pools_source()
