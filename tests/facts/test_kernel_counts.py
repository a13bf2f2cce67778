"""What a GPU's counters said of our own kernels, beside what paper and the chapter's machine count: the same numbers,
not nearly the same, wherever a cache has no say.
"""

import shutil

import numpy as np
import pytest

from threeloops.cli import main
from threeloops.facts.kernel_counts import COUNTERS, kernel_count, kernel_counts
from threeloops.facts.recorded_cases import Case
from threeloops.facts.stamped_files import stamped
from threeloops.inner_loop.coalescing import LANES, SECTOR_BYTES, passes_per_request, sectors_per_request
from threeloops.measure import counted_kernels
from threeloops.simulate.inner_loop import simt, toy_kernels
from threeloops.simulate.inner_loop.gemm_kernels import matmul_registers

PART, SMS = "h100-sxm5", 132


def count(kind, **sizes):
    return kernel_count(Case(kind=kind, dtype="fp32", sizes=sizes).name, PART)


def test_every_kernel_was_counted_by_every_counter():
    assert list(kernel_counts(PART)) == [case.name for case in counted_kernels.cases()]
    assert all(set(counts) == set(COUNTERS) for counts in kernel_counts(PART).values())
    stamp, _ = stamped("counted", "kernels")[PART]
    assert "ncu 2025" in stamp.software
    assert "/" not in stamp.hardware + stamp.note


@pytest.mark.parametrize("stride", [1, 2, 4, 8, 16, 32])
def test_sectors_of_a_stride(stride):
    counted = count("strided", reads=2**24, stride=stride)
    assert counted["load_requests"] == 2**24 / LANES
    sectors = sectors_per_request(stride_elements=stride, bytes_per_element=4)
    assert counted["load_sectors"] == sectors * counted["load_requests"]


@pytest.mark.parametrize("stride", [1, 2, 4, 8, 16, 32])
def test_memory_delivers_what_the_sectors_say_but_never_less_than_two_side_by_side(stride):
    counted = count("strided", reads=2**24, stride=stride)
    least = max(SECTOR_BYTES * counted["load_sectors"], 64 * 2**24 if stride >= 16 else 0)
    assert least <= counted["memory_read_bytes"] < 1.001 * least


@pytest.mark.parametrize("stride", [1, 2, 4, 8, 16, 32, 33])
def test_turns_of_shared_memory(stride):
    counted = count("banks", requests=2**14, stride=stride)
    assert counted["shared_loads"] == SMS * 2**14
    passes = passes_per_request(stride_words=stride)
    assert counted["shared_load_turns"] == passes * counted["shared_loads"]
    assert counted["shared_load_conflicts"] == (passes - 1) * counted["shared_loads"]


@pytest.mark.parametrize("ways", [1, 2, 4, 8, 16, 32])
def test_a_warp_that_parts_issues_every_way(ways):
    counted, alone = (count("paths", steps=2**12, paths=paths) for paths in (ways, 1))
    assert counted["multiply_adds"] == SMS * 2048 * 2**12  # as many as undivided: a thread does its own
    assert counted["instructions"] == pytest.approx(ways * alone["instructions"], rel=0.01)
    assert counted["threads_per_instruction"] == pytest.approx(32 / ways, rel=0.02)


MACHINE = {
    "naive": lambda a, b, c: simt.launch(toy_kernels.matmul, 128, 128, 128, a, b, c, grid=(4, 16), block=(32, 8)),
    "tiled": lambda a, b, c: simt.launch(
        toy_kernels.matmul_tiled, 128, 128, 32, True, a, b, c, grid=(4, 4), block=(32, 32)
    ),
    "registers": lambda a, b, c: simt.launch(matmul_registers, 128, 128, 64, 8, 8, a, b, c, grid=(2, 2), block=(64,)),
}


@pytest.mark.parametrize("rung", MACHINE)
def test_the_machine_of_chapter_1_counts_what_the_gpu_counted(rung):
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((128, 128)).astype(np.float32) for _ in range(2))
    c = np.zeros((128, 128), np.float32)
    run = MACHINE[rung](a, b, c)
    np.testing.assert_allclose(c, a @ b, atol=1e-3)
    counted = count(f"ladder_{rung}", m=128, n=128, k=128)
    assert run.loads == counted["load_requests"]
    assert run.load_sectors == counted["load_sectors"]
    assert run.stores == counted["store_requests"]
    assert run.store_sectors == counted["store_sectors"]
    assert run.flops == 2 * counted["multiply_adds"]
    assert run.bank_conflicts == counted["shared_load_conflicts"] == 0


@pytest.mark.parametrize("rung", MACHINE)
def test_a_large_product_reads_its_matrices_from_memory_once(rung):
    """What is asked for again, an L2 of 50 MB answers: 2 matrices of 4 MiB cross the bus once."""
    counted = count(f"ladder_{rung}", m=1024, n=1024, k=1024)
    assert counted["multiply_adds"] == 1024**3
    assert counted["memory_read_bytes"] == pytest.approx(2 * 2**22, rel=0.01)


def test_counters_need_a_gpu_and_its_profiler(capsys, tmp_path):
    if shutil.which("ncu"):
        pytest.skip("ncu is here")
    assert main(["record", "--counters", "--into", str(tmp_path)]) == 2
    assert "there is no GPU here, and a CPU has no such counters" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_what_nobody_counted_is_refused():
    with pytest.raises(ValueError, match="part='h100' is not known; did you mean 'h100-sxm5'"):
        kernel_counts("h100")
    with pytest.raises(ValueError, match="case='strided' is not known"):
        kernel_count("strided", PART)
