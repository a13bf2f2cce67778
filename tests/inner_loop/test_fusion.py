"""Fusion: bytes of a chain, by formula, by a machine that runs it, and by adding up torch's tensors."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from threeloops.inner_loop.fusion import Operation, fused_bytes, separate_bytes
from threeloops.operations import kernels
from threeloops.simulate.inner_loop.fused_steps import one_kernel, separate_kernels

RNG = np.random.default_rng(seed=3)
ARRAYS = {name: RNG.standard_normal((50, 7)).astype(np.float32) for name in ("x", "residual")} | {
    "bias": RNG.standard_normal(7).astype(np.float32),
    "mask": RNG.random((50, 7)) > 0.1,  # one byte each
}
CHAIN = [
    ("sum", np.add, ("x", "bias")),
    ("hidden", lambda a: np.maximum(a, np.float32(0)), ("sum",)),
    ("dropped", np.multiply, ("hidden", "mask")),
    ("out", np.add, ("dropped", "residual")),
]
STEPS = [Operation(name, inputs) for name, _, inputs in CHAIN]
WIDE = 50 * 7 * 4
SIZES = dict.fromkeys(("x", "residual", "sum", "hidden", "dropped", "out"), WIDE) | {"bias": 28, "mask": 350}


def test_separate_kernels_counted() -> None:
    ran = separate_kernels(CHAIN, ARRAYS)
    assert ran.moved_bytes == separate_bytes(STEPS, sizes=SIZES) == 9 * WIDE + 28 + 350
    assert ran.launches == 4


@pytest.mark.parametrize("rows", [1, 8, 50, 64])
@pytest.mark.parametrize("needed", [("out",), ("out", "hidden")])
def test_one_kernel_counted_and_right(rows: int, needed: tuple[str, ...]) -> None:
    apart, together = separate_kernels(CHAIN, ARRAYS), one_kernel(CHAIN, ARRAYS, rows=rows, needed=needed)
    assert together.moved_bytes == fused_bytes(STEPS, sizes=SIZES, needed=needed)
    for name in needed:
        np.testing.assert_array_equal(together.results[name], apart.results[name])
    assert "dropped" not in together.results


def test_separate_kernels_are_torchs_tensors() -> None:
    x, residual, bias = (torch.from_numpy(ARRAYS[name]) for name in ("x", "residual", "bias"))
    total, hidden, out = x + bias, F.relu(x + bias), F.relu(x + bias) + residual
    touched = (x, bias, total, total, hidden, hidden, residual, out)
    steps = [STEPS[0], STEPS[1], Operation("out", ("hidden", "residual"))]
    assert separate_bytes(steps, sizes=SIZES) == sum(tensor.nbytes for tensor in touched)


def test_a_chain_of_one_has_nothing_to_save() -> None:
    alone = [Operation("out", ("x", "residual"))]
    work = kernels.elementwise(elements=350, flops_per_element=1, inputs=2, bytes_per_element=4)
    assert separate_bytes(alone, sizes=SIZES) == fused_bytes(alone, sizes=SIZES, needed=("out",)) == work.moved_bytes


def test_bytes_scale_with_their_tensors() -> None:
    twice = {name: 2 * size for name, size in SIZES.items()}
    assert separate_bytes(STEPS, sizes=twice) == 2 * separate_bytes(STEPS, sizes=SIZES)
    assert fused_bytes(STEPS, sizes=twice, needed=("out",)) == 2 * fused_bytes(STEPS, sizes=SIZES, needed=("out",))


def test_refusals() -> None:
    with pytest.raises(ValueError, match="needed='x' is not known"):
        fused_bytes(STEPS, sizes=SIZES, needed=("x",))
    with pytest.raises(ValueError, match="tensor='sum' is not known"):
        separate_bytes(STEPS, sizes={"x": 1, "bias": 1})
    with pytest.raises(ValueError, match=r"sizes\['bias'\]=0 must be greater than 0"):
        separate_bytes(STEPS, sizes=SIZES | {"bias": 0})
