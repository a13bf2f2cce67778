"""This machine, level by level: what can be said of every machine, however busy."""

import contextlib
import itertools

import torch

from threeloops.measure.inner_loop import machine
from threeloops.units import KiB, MiB


def test_the_walk_visits_every_line_before_it_comes_back(monkeypatch) -> None:
    seen: list[int] = []
    real = machine._walked

    def noted(table, place, loads):
        if not seen:
            at = 0
            for _ in itertools.repeat(None, len(table) // 8):
                seen.append(at)
                at = table[at]
            assert at == 0
        return real(table, place, loads)

    monkeypatch.setattr(machine, "_walked", noted)
    machine.load_times((64 * KiB,), loads=10, repeats=1)
    assert len(seen) == len(set(seen)) == 1024  # 64 KiB in lines of 64 bytes
    assert all(place % 8 == 0 for place in seen)


def test_a_large_table_is_slower_to_walk_than_a_small_one() -> None:
    small, large = machine.load_times((32 * KiB, 64 * MiB), loads=20_000, repeats=5)
    assert large.step_s > 1.1 * small.step_s
    # a nanosecond is below every interpreter's step, and a slip of milliseconds for seconds above
    assert 1e-9 < small.step_s < 1e-4


def test_rates_are_those_of_a_memory() -> None:
    (rate,) = machine.read_rates((4 * MiB,), repeats=3)
    assert rate.size_bytes == 4 * MiB
    assert 0.2e9 < rate.bytes_per_s < 2e12


def test_caches_grow_with_their_distance() -> None:
    sizes = [level.size_bytes for level in machine.cache_levels()]
    assert sizes == sorted(sizes)
    assert all(4 * KiB <= size <= 4096 * MiB for size in sizes)


def test_one_core_gives_the_others_back() -> None:
    before = torch.get_num_threads()
    with contextlib.suppress(RuntimeError), machine.one_core():
        assert torch.get_num_threads() == 1
        raise RuntimeError("a kernel that fails")
    assert torch.get_num_threads() == before


def test_wider_vectors_are_offered_in_order_and_only_where_they_are(monkeypatch) -> None:
    monkeypatch.setattr(machine, "_processor_flags", lambda: {"pni", "avx"})
    monkeypatch.setattr(machine, "_gemm_rates", lambda core: {"float32": 2e9, "float64": 1e9, "core": core})
    found = machine.vector_gemm_rates()
    assert list(found) == list(machine.VECTORS)
    assert [rates is None for rates in found.values()] == [False, False, True, True]
