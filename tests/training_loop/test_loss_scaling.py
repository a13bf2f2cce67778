"""Loss scaling against a scaler played step by step, and both against torch's GradScaler."""

import pytest

from threeloops.inner_loop.number_formats import BF16, FP16
from threeloops.measure.inner_loop import number_formats as torch_formats
from threeloops.simulate.training_loop import loss_scaler
from threeloops.training_loop.updates import loss_scaling

SCALER = loss_scaling.Scaler()
LIMIT = loss_scaling.overflows_from(FP16)


def test_the_published_ends() -> None:
    # 1710.03740, section 3.2: fp16 reaches down to 2^-24, so half of that and less is zero
    assert loss_scaling.vanishes_up_to(FP16) == 2.0**-25
    last = loss_scaling.vanishes_up_to(FP16)
    assert torch_formats.cast([last, 1.01 * last], "fp16") == [0.0, 2.0**-24]
    assert torch_formats.cast([LIMIT], "fp16") == [float("inf")]


@pytest.mark.parametrize("gradient", [0.01, 0.9997, 0.99979, 1.0, 3.0, 10.0, 77.7, 4096.0, 6e4])
def test_first_skips_are_those_of_a_played_scaler(gradient: float) -> None:
    played = loss_scaler.play([gradient] * 40, limit=LIMIT)
    assert loss_scaling.first_skips(SCALER, largest_gradient=gradient, form=FP16) == sum(played.skipped)


def test_a_settled_scaler_skips_the_share_that_it_played() -> None:
    scaler = loss_scaling.Scaler(initial=4096, interval=7)
    played = loss_scaler.play([10.0] * 800, limit=LIMIT, initial=4096, interval=7)
    assert sum(played.skipped) / len(played.skipped) == loss_scaling.skipped_share(scaler) == 1 / 8


def test_torch_takes_the_same_scales() -> None:
    gradients = [10.0] * 12 + [500.0] * 3 + [0.5] * 30 + [float("inf")] + [0.5] * 9
    played = loss_scaler.play(gradients, limit=LIMIT, interval=5)
    assert torch_formats.loss_scales(gradients, interval=5) == played.scales


def test_a_wider_format_needs_no_scale() -> None:
    assert loss_scaling.first_skips(SCALER, largest_gradient=1e30, form=BF16) == 0
    assert loss_scaling.vanishes_up_to(BF16) < 1e-40


def test_scaling_moves_what_vanishes_by_the_scale() -> None:
    assert loss_scaling.vanishes_up_to(FP16, scale=1024) * 1024 == loss_scaling.vanishes_up_to(FP16)


def test_refusals() -> None:
    assert loss_scaling.skipped_share(loss_scaling.Scaler(growth=4, backoff=0.25)) == 1 / 2001
    with pytest.raises(ValueError, match=r"growth=2.0 and backoff=0.25 must cancel; try backoff=0.5"):
        loss_scaling.skipped_share(loss_scaling.Scaler(backoff=0.25))
    with pytest.raises(ValueError, match=r"growth=2.0 must be above 1 and backoff=1.0 below 1"):
        loss_scaling.Scaler(backoff=1.0)
    with pytest.raises(ValueError, match=r"largest_gradient=0 must be greater than 0"):
        loss_scaling.first_skips(SCALER, largest_gradient=0, form=FP16)
