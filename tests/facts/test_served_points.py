"""Served points: rows that can be what they say."""

from collections import Counter

from threeloops.facts import hardware
from threeloops.facts.served_points import served_points, served_sources
from threeloops.models import catalogue
from threeloops.models.parameters import model_parameters

POINTS = served_points()


def test_every_point_stands_once_and_names_what_the_catalogue_knows() -> None:
    assert max(Counter(POINTS).values()) == 1
    for point in POINTS:
        assert catalogue.model(point.model).name
        assert hardware.part(point.part).name
        assert 0 < point.shortest <= 1
        assert 0 < point.tpot_s < 1, point


def test_no_server_computes_more_than_its_peak() -> None:
    """From its arrival to its end each request has its prompt and its answer computed by the layers, so many at a
    time.
    """
    for point in POINTS:
        model = catalogue.model(point.model)
        weights = model_parameters(model).active - 2 * model.vocab * model.hidden
        flops = 2 * weights * (point.mean_prompt + point.mean_answer)
        took_s = point.ttft_s + (point.mean_answer - 1) * point.tpot_s
        peak = hardware.part(point.part).peak_flops_per_s(
            {"nvfp4": "fp4", "mxfp4": "bf16"}.get(point.format, point.format)
        )
        assert point.requests * flops / took_s < point.tp * peak, point


def test_mean_lengths_lie_between_the_shortest_and_what_is_stated() -> None:
    drawn = next(point for point in POINTS if point.shortest < 1)
    assert drawn.shortest * drawn.prompt < drawn.mean_prompt < drawn.prompt
    plain = next(point for point in POINTS if point.shortest == 1)
    assert (plain.mean_prompt, plain.mean_answer) == (plain.prompt, plain.answer)


def test_a_source_says_who_and_how() -> None:
    (source,) = served_sources()
    assert "commit" in source.source
    assert "at a time" in source.timed
    assert "commit" in source.settings
