"""Block tape: real outputs however the block is cut, and as many kept bytes as the published formulas say."""

import numpy as np
import pytest

from threeloops.models.architecture import Attention, DenseMlp, Layer
from threeloops.simulate.training_loop.block_tape import Blocks, Tape
from threeloops.training_loop.memory import activations

S, B, H, A = 12, 2, 24, 6


def test_ranks_together_compute_what_one_rank_computes() -> None:
    blocks = Blocks(layers=2, heads=A, hidden=H, dtype=np.float64)
    x = blocks.inputs(batch=B, sequence=S)
    alone = blocks.outputs(x, tp=1, sequence_parallel=False)
    for tp, sequence_parallel in ((2, False), (3, True), (6, True)):
        assert np.allclose(blocks.outputs(x, tp=tp, sequence_parallel=sequence_parallel), alone)
    assert not np.allclose(alone, x)


@pytest.mark.parametrize(
    ("tp", "sequence_parallel", "recompute", "bytes_per_sbh"),
    [  # Korthikanti et al., 2022, arXiv:2205.05198, table 2, with 5as/h = 5 * 6 * 12 / 24 = 15
        (1, False, "none", 34 + 15),
        (3, False, "none", 10 + 24 / 3 + 15 / 3),
        (3, True, "none", (34 + 15) / 3),
        (3, True, "selective", 34 / 3),
    ],
)
def test_one_block_keeps_what_the_paper_says(
    tp: int, sequence_parallel: bool, recompute: str, bytes_per_sbh: float
) -> None:
    blocks = Blocks(layers=1, heads=A, hidden=H, dtype=np.float16)
    kept = blocks.peak_bytes(
        blocks.inputs(batch=B, sequence=S), tp=tp, sequence_parallel=sequence_parallel, recompute=recompute
    )
    assert kept == pytest.approx(bytes_per_sbh * S * B * H)


def test_full_recomputation_keeps_every_input_and_one_block() -> None:
    # Each of five inputs is 2sbh; the block that is run again keeps 34 + 15, of which its input is already there.
    blocks = Blocks(layers=5, heads=A, hidden=H, dtype=np.float16)
    kept = blocks.peak_bytes(blocks.inputs(batch=B, sequence=S), tp=1, sequence_parallel=False, recompute="full")
    assert kept == (5 * 2 + 34 + 15 - 2) * S * B * H


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize(("tp", "sequence_parallel"), [(1, False), (2, False), (6, True)])
@pytest.mark.parametrize("recompute", ["none", "selective"])
def test_the_itemised_list_agrees(dtype: type, tp: int, sequence_parallel: bool, recompute: str) -> None:
    blocks = Blocks(layers=3, heads=A, hidden=H, dtype=dtype)
    layer = Layer(
        attention=Attention(num_heads=A, num_kv_heads=A, head_dim=H // A),
        mlp=DenseMlp(intermediate=4 * H, gated=False, activation="gelu"),
        norm="layernorm",
        num_norms=2,
    )
    kept = activations.per_layer(
        layer,
        hidden=H,
        sequence=S,
        micro_batch=B,
        bytes_per_element=np.dtype(dtype).itemsize,
        kernels="korthikanti",
        dropout=True,
        tp=tp,
        sequence_parallel=sequence_parallel,
        recompute=recompute,
    )
    assert (
        blocks.peak_bytes(
            blocks.inputs(batch=B, sequence=S), tp=tp, sequence_parallel=sequence_parallel, recompute=recompute
        )
        == 3 * kept.total_bytes
    )


def test_a_tensor_kept_twice_costs_once() -> None:
    tape, x = Tape(), np.zeros((4, 6), dtype=np.float32)
    tape.keep(x, x.T, x[1:])
    assert tape.together_with(Tape()) == 96
    tape.keep(x.copy())
    assert tape.together_with(Tape()) == 192
