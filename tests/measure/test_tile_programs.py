"""Kernels in Triton's words: what our small interpreter loads is what the formula says, and what Triton's own loads."""

import importlib.util
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from threeloops.measure.inner_loop import tile_programs
from threeloops.operations import kernels

CHAPTER = Path(__file__).parents[2] / "chapters" / "1_inner_loop.ipynb"


def cells() -> dict[str, str]:
    """The chapter's cells by id."""
    return {cell["id"]: "".join(cell["source"]) for cell in json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]}


def taught() -> str:
    """The chapter's kernel."""
    return cells()["gpu-triton-kernel"].partition("\n\n\n")[2]


def kernel(machine: Any) -> Any:
    names = {"triton": machine.triton, "tl": machine.tl}
    exec(taught(), names)
    return names["matmul"]


@pytest.mark.parametrize(("m", "n", "k", "tile"), [(96, 128, 64, 32), (8, 24, 40, 8), (48, 16, 16, 16)])
def test_the_chapter_s_kernel_multiplies_and_loads_what_the_formula_says(m: int, n: int, k: int, tile: int) -> None:
    machine, rng = tile_programs.Small(), np.random.default_rng(m)
    a, b = rng.integers(9, size=(m, k)).astype("f"), rng.integers(9, size=(k, n)).astype("f")
    c = np.zeros((m, n), dtype="f")
    loaded = machine.loaded_bytes(kernel(machine)[(n // tile, m // tile)], a, b, c, n, k, T=tile)
    assert np.array_equal(c, a @ b)
    work = kernels.tiled_gemm(m=m, n=n, k=k, tile_m=tile, tile_n=tile, bytes_per_element=4)
    assert loaded == work.moved_bytes - c.nbytes


def test_the_book_was_made_with_triton_s_own_interpreter() -> None:
    found = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
    (cell,) = [cell for cell in found if cell["id"] == "gpu-triton-twin"]
    assert "".join(cell["outputs"][0]["text"]) == (
        "right: True; 196,608 bytes loaded, 196,608 by formula; measured by Triton 3.7.1's interpreter\n"
    )


def test_what_a_mask_leaves_out_is_neither_loaded_nor_stored() -> None:
    machine = tile_programs.Small()
    tl = machine.tl

    def halve(x_ptr: Any, n: int, T: int) -> None:
        i = tl.program_id(0) * T + tl.arange(0, T)
        assert tl.num_programs(0) == 2
        found = tl.load(x_ptr + i, mask=i < n, other=7)
        assert np.all(found[i >= n] == 7)
        tl.store(x_ptr + i, found / 2, mask=i < n)

    numbers = np.arange(12, dtype=np.float64)
    assert machine.loaded_bytes(machine.triton.jit(halve)[(machine.triton.cdiv(10, 8),)], numbers, 10, T=8) == 80
    assert numbers.tolist() == [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 10, 11]


@pytest.mark.parametrize("place", [12, -1])
def test_a_place_outside_the_array_is_refused(place: int) -> None:
    machine = tile_programs.Small()
    launch = machine.triton.jit(lambda x_ptr: machine.tl.load(x_ptr + place))[(1,)]
    with pytest.raises(IndexError, match=f"element {place} of an array of 12: a mask keeps such places out"):
        machine.loaded_bytes(launch, np.zeros(12))


def test_our_interpreter_runs_where_triton_is_missing_or_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(tile_programs.INTERPRET, raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: None)
    assert isinstance(tile_programs.here(), tile_programs.Small)
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: package)
    monkeypatch.setitem(sys.modules, "triton", None)
    assert isinstance(tile_programs.here(), tile_programs.Small)


def test_triton_s_own_interpreter_loads_the_same(tmp_path: Path) -> None:
    """In a process of its own: triton keeps for good how it was imported."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed")
    script = tmp_path / "kernel.py"
    script.write_text(
        "import numpy as np\nfrom threeloops.measure.inner_loop import tile_programs\n"
        "machine = tile_programs.here()\ntriton, tl = machine.triton, machine.tl\n\n\n"
        + taught()
        + "\n\na, b, c = (np.ones(size, dtype='f') for size in ((96, 64), (64, 128), (96, 128)))\n"
        "print(machine.loaded_bytes(matmul[(4, 3)], a, b, c, 128, 64, T=32), c.min(), c.max(), machine.name)\n"
    )
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, env={**os.environ}, check=True)
    assert ran.stdout.startswith("196608 64.0 64.0 Triton ")


def test_the_listing_in_cuda_tile_becomes_tile_ir(tmp_path: Path) -> None:
    """NVIDIA's own front end translates it, without a GPU."""
    ct = pytest.importorskip("cuda.tile")
    from cuda.tile import compilation

    listing = cells()["gpu-triton-read"].partition("```python\n")[2].partition("```")[0]
    file = tmp_path / "listing.py"  # its front end reads the source from a file
    file.write_text("import cuda.tile as ct\n\n\n" + listing)
    spec = importlib.util.spec_from_file_location("listing", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    plain = {"index_dtype": ct.int32, "alias_groups": (), "may_alias_internally": False, "stride_constant": (None, 1)}
    array = compilation.ArrayConstraint(ct.float32, 2, stride_lower_bound_incl=0, **plain)
    signature = compilation.KernelSignature(
        [array, array, array, compilation.ConstantConstraint(32)], compilation.CallingConvention.cutile_python_v1()
    )
    translated = io.BytesIO()
    compilation.export_kernel(
        module.matmul, [signature], translated, output_format="tileir_bytecode", bytecode_version="13.3"
    )
    assert translated.getvalue().startswith(b"\x7fTileIR")
    assert b"matmul" in translated.getvalue()
