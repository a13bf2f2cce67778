"""Chains through a table: that they are one cycle, that each read waits for the last, and that company helps on any
processor.
"""

import numpy as np
import pytest

from threeloops.measure.inner_loop import chained_loads


@pytest.mark.parametrize("power", [2, 9, 16])
def test_a_chain_comes_through_every_place_once(power: int) -> None:
    table = chained_loads.chain(num_places=2**power)
    place, visited = 0, np.zeros(2**power, dtype=bool)
    for _ in range(2**power):
        assert not visited[place]
        visited[place] = True
        place = int(table[place])
    assert visited.all()
    assert place == 0


def test_no_prefetcher_finds_a_stride() -> None:
    table = chained_loads.chain(num_places=2**16)
    walked = [0]
    for _ in range(1000):
        walked.append(int(table[walked[-1]]))
    strides = np.diff(walked)
    assert len(set(strides.tolist())) > 900


def test_independent_reads_overlap_and_dependent_ones_do_not() -> None:
    table = chained_loads.chain(num_places=2**24)  # 128 MiB
    alone, together = (chained_loads.walk(table, chains=chains) for chains in (1, 512))
    assert alone.chains == 1
    # 512 at a time, several are under way at once on every processor of the last twenty years.
    assert alone.memory_s > 2 * together.memory_s_per_load > 0


def test_refusals() -> None:
    with pytest.raises(ValueError, match="num_places=1000 must be a power of two, like 512"):
        chained_loads.chain(num_places=1000)
    with pytest.raises(ValueError, match="chains=0"):
        chained_loads.walk(chained_loads.chain(num_places=16), chains=0)
