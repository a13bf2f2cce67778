"""Engine exchanges: against NCCL's times of the same exchange, and what is refused."""

import pytest

from threeloops.facts.engine_exchanges import engine_all_reduce_s, engine_exchanges, engine_exchanges_source
from threeloops.training_loop.network.measured_collectives import expected_collective


@pytest.mark.parametrize("engine", ["TensorRT-LLM", "vLLM", "SGLang"])
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_few_bytes_are_quicker_than_by_nccl_and_many_take_the_same(engine: str, ranks: int) -> None:
    """Two collections of the same card: nccl-tests, and each engine's own benchmark."""

    def took(size_bytes: float) -> tuple[float, float]:
        nccl = expected_collective("h100-sxm5", op="all_reduce", ranks=ranks, size_bytes=size_bytes).seconds
        return engine_all_reduce_s("h100-sxm5", engine=engine, ranks=ranks, size_bytes=size_bytes), nccl

    own, nccl = took(16e3)
    assert own < 0.8 * nccl
    own, nccl = took(512e6)
    assert own == pytest.approx(nccl, rel=0.15)


def test_between_sizes_times_rise_and_beyond_the_last_its_rate_holds() -> None:
    def took(size_bytes: float) -> float:
        return engine_all_reduce_s("b200-hgx", engine="vLLM", ranks=8, size_bytes=size_bytes)

    assert took(1) == took(256)
    assert took(64e6) < took(80e6) < took(128e6)
    assert took(4 * 2**30) == pytest.approx(4 * took(2**30))


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"part": "gh200-96gb"}, "part='gh200-96gb'"),
        ({"engine": "TGI"}, "engine='TGI'"),
        ({"ranks": 3}, "ranks=3"),
        ({"size_bytes": 0}, "size_bytes"),
    ],
)
def test_what_was_not_timed_is_refused(other: dict[str, object], says: str) -> None:
    given: dict[str, object] = {"part": "h100-sxm5", "engine": "vLLM", "ranks": 2, "size_bytes": 1e6}
    with pytest.raises(ValueError, match=says):
        engine_all_reduce_s(**given | other)  # type: ignore[arg-type]


def test_the_source_names_its_commit() -> None:
    assert "commit" in engine_exchanges_source()


def test_every_row_is_listed_with_its_source_and_is_what_the_lookup_returns() -> None:
    for one in engine_exchanges():
        assert one.source
        assert one.licence == "Apache-2.0"
        assert one.version
        for size, seconds in one.points[:: len(one.points) // 3]:
            found = engine_all_reduce_s(one.part, engine=one.engine, ranks=one.ranks, size_bytes=size)
            assert abs(found - seconds) < 1e-12
