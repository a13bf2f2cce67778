"""Attention kernels: recordings recounted by hand, printed rates, and who is refused."""

import pytest

from threeloops.facts.recorded import Measured, find
from threeloops.operations.attention_kernels import (
    HEAD_DIM,
    HEADS,
    LENGTHS,
    PARTS_OF,
    RECORDED,
    RECORDED_PARTS,
    TOKENS,
    kernel_rates,
    usual_kernel,
)

SHAPE = {"batch": 2, "num_heads": 16, "num_kv_heads": 16, "head_dim": 128}


@pytest.mark.parametrize("part", RECORDED_PARTS)
@pytest.mark.parametrize("kernel", RECORDED)
@pytest.mark.parametrize("tokens", LENGTHS)
def test_a_recorded_length_is_its_recording(kernel: str, part: str, tokens: int) -> None:
    """Two products of 2 FLOPs a pair and width, half of the square; five products backward."""
    batch = TOKENS // tokens
    forward_flops = 2 * 2 * batch * HEADS * HEAD_DIM * tokens**2 / 2
    rates = kernel_rates(kernel, part, **SHAPE, tokens=tokens)
    for way, flops, rate in (
        ("", forward_flops, rates.forward_flops_per_s),
        ("_backward", forward_flops * 5 / 2, rates.backward_flops_per_s),
    ):
        case = f"{RECORDED[kernel]}{way}-bf16-batch{batch}-heads{HEADS}-head_dim{HEAD_DIM}-tokens{tokens}"
        took = find(case, part)
        assert isinstance(took, Measured)
        assert rate == pytest.approx(flops / took.median)


def test_tritons_printed_rates_are_its_own_on_an_a100_and_more_on_an_h100() -> None:
    older, newer = (kernel_rates("triton-2023", part, **SHAPE, tokens=4096) for part in PARTS_OF["triton-2023"])
    assert older.forward_flops_per_s == pytest.approx(112.870690e12)
    assert older.backward_flops_per_s == pytest.approx(71.723711e12)
    assert 1.2 < newer.forward_flops_per_s / older.forward_flops_per_s < 2.4


@pytest.mark.parametrize(("kernel", "part"), [(kernel, part) for kernel in PARTS_OF for part in PARTS_OF[kernel]])
def test_a_kernel_gains_by_length_and_stays_below_the_peak(kernel: str, part: str) -> None:
    from threeloops.facts import hardware

    rates = [kernel_rates(kernel, part, **SHAPE, tokens=tokens) for tokens in (512, 2048, 16_384)]
    forward = [one.forward_flops_per_s for one in rates]
    assert forward == sorted(forward)
    assert all(one.backward_flops_per_s < one.forward_flops_per_s for one in rates)
    assert forward[-1] < hardware.part(part).peak_flops_per_s("bf16")


def test_an_a100s_flashattention_2_is_what_its_authors_print() -> None:
    """arXiv:2307.08691 prints up to 230 TFLOP/s forward, and some 190 causal at a head of 128."""
    rates = kernel_rates("flash-2", "a100-sxm4-80gb", **SHAPE, tokens=16_384)
    assert 160e12 < rates.forward_flops_per_s < 230e12


@pytest.mark.parametrize(
    ("kernel", "part", "said"),
    [
        ("flash-9", "h100-sxm5", "kernel='flash-9'"),
        ("cudnn", "a100-sxm4-80gb", "part='a100-sxm4-80gb'"),
        ("triton-2023", "b200-hgx", "part='b200-hgx'"),
    ],
)
def test_what_nobody_measured_is_refused(kernel: str, part: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        kernel_rates(kernel, part, **SHAPE, tokens=2048)
    with pytest.raises(ValueError, match="part='mi300x'"):
        usual_kernel("mi300x")
