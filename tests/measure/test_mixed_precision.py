"""Mixed precision: what autocast chooses, what rounding forgets, what clipping sees, where the first NaN is, which
scale an FP8 cast uses.
"""

import math

import pytest
import torch

from threeloops.inner_loop import number_formats
from threeloops.measure.training_loop import autocast_ops, first_bad, ill_training, update_rounding
from threeloops.measure.training_loop.autocast_ops import executed
from threeloops.simulate.inner_loop import amax_history
from threeloops.simulate.training_loop import loss_scaler
from threeloops.training_loop.updates import loss_scaling

# --- autocast ---


def test_without_autocast_nothing_is_cast() -> None:
    layer = torch.nn.Linear(8, 4)
    ops = executed(lambda: layer(torch.ones(2, 8)))
    assert {(op.read, op.wrote) for op in ops if op.name == "addmm"} == {("float32", "float32")}
    assert not [op for op in ops if op.name == autocast_ops.CAST]


def test_autocast_narrows_products_widens_losses_and_promotes_sums() -> None:
    layer, x = torch.nn.Linear(8, 8), torch.ones(2, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ops = executed(lambda: torch.nn.functional.mse_loss(x + layer(x), x))
    heard = {op.name: (op.read, op.wrote) for op in ops}
    assert heard["addmm"] == ("bfloat16", "bfloat16")
    assert heard["add"] == ("float32+bfloat16", "float32")
    assert heard["mse_loss"] == ("float32", "float32")
    assert layer.weight.dtype == torch.float32


def test_a_weight_used_twice_is_cast_once_in_one_block() -> None:
    layer, x = torch.nn.Linear(8, 8, bias=False), torch.ones(2, 8, dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ops = executed(lambda: layer(layer(x)))
    assert sum(op.name == autocast_ops.CAST for op in ops) == 1


# --- update rounding ---


def test_the_four_ways_differ_as_they_should() -> None:
    runs = {
        keeping: update_rounding.train(keeping, steps=200, learning_rate=1e-4) for keeping in update_rounding.KEEPINGS
    }
    assert runs["fp32"].losses[-1] == pytest.approx(runs["master"].losses[-1], rel=0.02)
    assert runs["fp32"].losses[-1] == pytest.approx(runs["stochastic"].losses[-1], rel=0.05)
    assert runs["nearest"].losses[-1] > 1.5 * runs["master"].losses[-1]
    assert runs["nearest"].stuck_share > 0.7 > 0.05 > runs["stochastic"].stuck_share


def test_frozen_weights_are_those_that_the_formula_says() -> None:
    run = update_rounding.train("nearest", steps=100, learning_rate=1e-4)
    limit = number_formats.swallowed_from(1e-4, number_formats.BF16)
    out_of_reach = sum(abs(weight) >= limit for weight in run.first_weights) / len(run.first_weights)
    assert run.stuck_share == pytest.approx(out_of_reach, abs=0.06)


def test_stochastic_rounding_is_right_on_average_and_leaves_bf16_numbers_alone() -> None:
    coins = torch.Generator().manual_seed(3)
    values = torch.full((20_000,), -1.003)
    rounded = update_rounding.stochastically_rounded(values, coins).float()
    assert set(rounded.tolist()) == {-1.0, -1.0078125}
    assert float(rounded.mean()) == pytest.approx(-1.003, abs=2e-4)
    exact = torch.tensor([0.5, -3.0, 1.0078125, 0.0])
    assert update_rounding.stochastically_rounded(exact, coins).tolist() == exact.tolist()


def test_an_unknown_way_of_keeping_weights_is_refused() -> None:
    with pytest.raises(ValueError, match="keeping='half'"):
        update_rounding.train("half", steps=1, learning_rate=1e-3)


# --- scale and clipping, against torch's own loop ---


@pytest.mark.parametrize("unscaled", [True, False])
def test_torch_clips_what_the_formula_says(unscaled: bool) -> None:
    weight = torch.nn.Parameter(torch.zeros(3))
    sgd, scaler = torch.optim.SGD([weight], lr=0.5), torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale((weight * torch.tensor([0.2, 0.3, 0.6])).sum()).backward()  # a gradient with a norm of 0.7
    if unscaled:
        scaler.unscale_(sgd)
    torch.nn.utils.clip_grad_norm_([weight], 0.9)
    scaler.step(sgd)
    told = 0.5 * loss_scaling.clipped_norm(norm=0.7, largest=0.9, scale=1024, unscaled=unscaled)
    assert float(weight.detach().norm()) == pytest.approx(told, rel=1e-4)


@pytest.mark.parametrize(
    ("bad", "backoff", "growth"), [(1, 0.5, 2.0), (3, 0.5, 2.0), (3, 0.25, 2.0), (2, 0.5, 4.0), (3, 0.5, 4.0)]
)
def test_the_scale_is_back_when_the_formula_says(bad: int, backoff: float, growth: float) -> None:
    scales = loss_scaler.play(
        [math.nan] * bad + [1e-9] * 200, limit=65520, backoff=backoff, growth=growth, interval=7
    ).scales
    back = next(step for step in range(bad, len(scales)) if scales[step] >= scales[0]) - bad
    assert back == loss_scaling.recovery_steps(
        loss_scaling.Scaler(backoff=backoff, growth=growth, interval=7), bad_steps=bad
    )


# --- the first bad number ---


@pytest.mark.parametrize(
    ("fault", "cures"),
    [("square", {"bf16", "rewrite"}), ("root", {"rewrite"}), ("records", {"clip", "rewrite"})],
)
def test_each_fault_has_its_cure(fault: str, cures: set[str]) -> None:
    assert {remedy for remedy in ill_training.REMEDIES if ill_training.train(fault, remedy, steps=40).healthy} == cures


def test_hooks_name_the_place_and_anomaly_mode_the_operation() -> None:
    assert ill_training.train("square", "none", steps=3).first_place == "forward: made in energy"
    assert ill_training.train("root", "none", steps=3).first_place == "backward: made in energy"
    model = ill_training.network("root")
    assert "SqrtBackward0" in first_bad.anomaly(
        lambda: ill_training.loss_of(model, *ill_training.batch("root", step=0))
    )
    healed = ill_training.network("root", rewritten=True)
    assert first_bad.anomaly(lambda: ill_training.loss_of(healed, *ill_training.batch("root", step=0))) == "no NaN"


def test_hooks_tell_weights_from_inputs_and_are_gone_afterwards() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    with torch.no_grad():
        model[0].weight[0, 0] = math.nan
    with first_bad.watched(model) as found:
        model(torch.ones(1, 2))
    assert found[0] == "forward: weights of 0"
    model(torch.full((1, 2), math.inf))
    assert len(found) == 2  # the linear layer and, after it, the ReLU; nothing from the second call


# --- FP8 scales ---


def test_current_scaling_never_saturates() -> None:
    sizes = [1.0, 3.0, 0.1, 500.0, 2.0]
    played = amax_history.play(sizes, largest=448.0, history=0)
    assert not any(played.saturated)
    assert [size * scale for size, scale in zip(sizes, played.scales, strict=True)] == pytest.approx([448.0] * 5)


def test_delayed_scaling_saturates_whenever_a_tensor_outgrows_its_past() -> None:
    grown = amax_history.play([1.05**step for step in range(50)], largest=448.0, history=16)
    assert sum(grown.saturated) == 49  # all but the first, whose scale of 1 is far too small
    assert not any(amax_history.play([1.05**step for step in range(50)], largest=448.0, history=16, margin=1).saturated)
    shrunk = amax_history.play([0.95**step for step in range(50)], largest=448.0, history=16)
    assert not any(shrunk.saturated)


def test_an_outlier_is_remembered_for_the_length_of_the_history() -> None:
    played = amax_history.play([1.0] * 5 + [50.0] + [1.0] * 20, largest=448.0, history=8)
    assert [step for step, scale in enumerate(played.scales) if scale == 448.0 / 50] == list(range(6, 14))
    assert [step for step, bad in enumerate(played.saturated) if bad] == [5]
