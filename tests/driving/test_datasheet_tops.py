"""A brochure's total taken apart: the formula against products that are done or not, and against a chip's units."""

import numpy as np
import pytest

from threeloops.driving import datasheet_tops
from threeloops.facts import hardware
from threeloops.simulate.inner_loop import two_of_four


@pytest.mark.parametrize(("rows", "columns", "others"), [(3, 40, 70), (17, 8, 5), (6, 16, 0)])
def test_dense_weights_get_the_products_that_sparse_ones_really_do(rows: int, columns: int, others: int) -> None:
    """A second's products of one engine, one to each weight; those with a pruned weight are counted, not done."""
    done = two_of_four.pack(np.random.default_rng(rows).normal(size=(rows, columns))).values.size
    dense = datasheet_tops.dense_engine_ops_per_s(total_ops_per_s=rows * columns + others, others_ops_per_s=others)
    assert dense == done


def test_what_is_left_of_an_orins_total_is_what_its_tensor_cores_do() -> None:
    """64 tensor cores, 512 dense multiply-adds a cycle, 1.3 GHz; 275 and 105 are what the data sheet prints."""
    cycles = 1.3e9
    done = sum(2 * 512 * cycles for _core in range(64))
    dense = datasheet_tops.dense_engine_ops_per_s(total_ops_per_s=275e12, others_ops_per_s=105e12)
    assert dense == pytest.approx(done, rel=0.005)


def test_a_comparisons_line_has_memory_and_power_as_they_are_printed() -> None:
    """NVIDIA's data sheet of the module: 204.8 GB/s, and up to 60 W."""
    orin = datasheet_tops.dense_in_words(hardware.part("jetson-agx-orin-64gb"))
    assert orin.endswith("; 204.8 GB/s; 60 W")


def test_engines_that_have_all_of_the_total_are_refused() -> None:
    with pytest.raises(ValueError, match="others_ops_per_s=9 must be less than total_ops_per_s=9"):
        datasheet_tops.dense_engine_ops_per_s(total_ops_per_s=9, others_ops_per_s=9)
