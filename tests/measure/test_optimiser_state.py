"""State of real torch optimisers, held against the recipes' bytes per parameter."""

import pytest
import torch

from threeloops.measure.training_loop.optimiser_state import state_bytes, state_tensors
from threeloops.training_loop.memory.recipes import RECIPES
from threeloops.training_loop.updates.optimisers import adafactor_state_bytes

SHAPES = [(60, 100), (100, 30), (30,)]
VALUES = 60 * 100 + 100 * 30 + 30
STEP_BYTES = 4  # one fp32 counter per parameter tensor


@pytest.fixture(autouse=True)
def one_thread():
    """Blocks this small only lose time to threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def parameters(dtype=torch.float32, shapes=SHAPES):
    return [torch.nn.Parameter(torch.ones(shape, dtype=dtype)) for shape in shapes]


@pytest.mark.parametrize(
    ("recipe", "make", "dtype", "counters"),
    [
        ("sgd", lambda p: torch.optim.SGD(p, lr=0.1), torch.float32, 0),
        ("sgd-momentum", lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), torch.float32, 0),
        ("autocast", torch.optim.Adam, torch.float32, len(SHAPES)),
        ("autocast", torch.optim.AdamW, torch.float32, len(SHAPES)),
        ("pure-bf16", torch.optim.AdamW, torch.bfloat16, len(SHAPES)),
    ],
)
def test_recipes_that_torch_runs(recipe, make, dtype, counters):
    kept = parameters(dtype)
    state = RECIPES[recipe].others
    assert state_bytes(make(kept)) == state.optimiser_bytes * VALUES + counters * STEP_BYTES
    assert sum(p.nbytes for p in kept) == state.weight_bytes * VALUES
    assert sum(p.grad.nbytes for p in kept) == state.gradient_bytes * VALUES


def test_bf16_adam_keeps_no_master_copy():
    # A widespread claim says otherwise: every state tensor but the step counter has the dtype of the parameter.
    tensors = state_tensors(torch.optim.AdamW(parameters(torch.bfloat16)))
    assert {tensor.name: tensor.dtype for tensor in tensors} == {
        "step": "torch.float32",
        "exp_avg": "torch.bfloat16",
        "exp_avg_sq": "torch.bfloat16",
    }


def test_muon_keeps_one_momentum_for_each_matrix():
    matrices = [shape for shape in SHAPES if len(shape) == 2]
    tensors = state_tensors(torch.optim.Muon(parameters(shapes=matrices)))
    values = sum(rows * columns for rows, columns in matrices)
    assert sum(tensor.bytes for tensor in tensors) == RECIPES["megatron-muon"].hidden_matrices.moment_bytes * values
    assert {tensor.name for tensor in tensors} == {"momentum_buffer"}
    with pytest.raises(ValueError, match="2D"):
        torch.optim.Muon(parameters())


def test_adafactor_keeps_rows_and_columns_instead_of_matrices():
    # Shazeer & Stern, 2018, arXiv:1804.04235: one number per row and one per column; a vector keeps its whole second
    # moment.
    values = (60 + 100) + (100 + 30) + 30
    assert state_bytes(torch.optim.Adafactor(parameters())) == 4 * values + len(SHAPES) * STEP_BYTES


ODD_SHAPES = [*SHAPES, (5, 7, 3, 2), (1, 9), (9, 1), (1,), ()]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_adafactor_keeps_what_is_predicted_for_every_shape(dtype):
    for shape in ODD_SHAPES:
        told = adafactor_state_bytes(shapes=[shape], bytes_per_element=dtype.itemsize, first_moment=False)
        assert state_bytes(torch.optim.Adafactor(parameters(dtype, [shape]))) == told + STEP_BYTES, shape


@pytest.mark.parametrize("first_moment", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_transformers_adafactor_keeps_fp32_and_a_first_moment_where_asked(dtype, first_moment):
    from transformers.optimization import Adafactor

    made = Adafactor(
        parameters(dtype, ODD_SHAPES),
        lr=1e-3,
        beta1=0.9 if first_moment else None,
        relative_step=False,
        scale_parameter=False,
    )
    kept = sum(tensor.bytes for tensor in state_tensors(made) if tensor.name != "RMS")  # a single number per tensor
    assert kept == adafactor_state_bytes(shapes=ODD_SHAPES, bytes_per_element=4, first_moment=first_moment)


def test_adafactor_beside_adam():
    # transformers documentation, "Methods and tools for efficient training on a single GPU", for t5-3b: Adafactor
    # "uses slightly more than 4 bytes for each parameter" where AdamW uses 8. A matrix of Llama 3 8B: 4096 * 14336
    # values, 4096 + 14336 factors, so 4 * (1 + 1/3186) bytes each.
    matrix = {"shapes": [(4096, 14336)], "bytes_per_element": 4}
    assert adafactor_state_bytes(**matrix, first_moment=True) / (4096 * 14336) == pytest.approx(
        4 * (1 + 1 / 3186), rel=1e-6
    )
    # Without one, a square matrix of twice the side has four times the parameters and twice the state.
    small, large = (
        adafactor_state_bytes(shapes=[(side, side)], bytes_per_element=4, first_moment=False) for side in (512, 1024)
    )
    assert large == 2 * small
    vector = RECIPES["autocast"].others.moment_bytes / 2 * 30  # nothing to factor: one of Adam's two moments
    assert adafactor_state_bytes(shapes=[(30,)], bytes_per_element=4, first_moment=False) == vector


def test_adafactor_refuses_what_is_no_shape():
    assert adafactor_state_bytes(shapes=[(1, 1)], bytes_per_element=4, first_moment=False) == 8
    with pytest.raises(ValueError, match="side=0 must be a whole number of at least 1"):
        adafactor_state_bytes(shapes=[(4, 0)], bytes_per_element=4, first_moment=False)
    with pytest.raises(ValueError, match="bytes_per_element=0 must be greater than 0"):
        adafactor_state_bytes(shapes=[(4, 4)], bytes_per_element=0, first_moment=False)


def test_amsgrad_keeps_a_third_moment():
    plain, amsgrad = (state_bytes(torch.optim.AdamW(parameters(), amsgrad=on)) for on in (False, True))
    assert amsgrad - plain == 4 * VALUES


def test_twice_the_width_is_twice_the_state():
    once = state_bytes(torch.optim.SGD(parameters(shapes=[(6, 10)]), lr=0.1, momentum=0.9))
    assert state_bytes(torch.optim.SGD(parameters(shapes=[(6, 20)]), lr=0.1, momentum=0.9)) == 2 * once
