"""Lines, small networks, similarity, the chain rule and energy: each held against something that does not know the
formula.
"""

import math
import random
from itertools import pairwise

import numpy
import pytest
import torch

from threeloops.foundations import chain_rule, dense_networks, lines, similarity, training_energy
from threeloops.foundations.lines import Line

# --- lines ---


@pytest.mark.parametrize("seed", range(20))
def test_combined_lines_answer_as_their_functions_do(seed):
    rng = random.Random(seed)
    f, g = (Line(rng.randint(-9, 9), rng.randint(-9, 9)) for _ in range(2))
    for x in (-3, 0, 2, 11):
        assert lines.summed(f, g)(x) == f(x) + g(x)
        assert lines.composed(f, g)(x) == f(g(x))
        assert lines.product(f, g)(x) == f(x) * g(x)


def test_a_product_bends_only_when_both_factors_slope():
    assert lines.product(Line(3, -1), Line(-1, 2)).bends
    assert not lines.product(Line(3, -1), Line(0, 2)).bends
    assert not lines.product(Line(0, 5), Line(0, 2)).bends


# --- networks ---


@pytest.mark.parametrize("widths", [[3, 1], [2, 2, 1], [784, 128, 10], [5, 9, 4, 3]])
def test_parameters_are_those_that_torch_allocates(widths):
    layers = torch.nn.Sequential(*(torch.nn.Linear(a, b) for a, b in pairwise(widths)))
    assert dense_networks.parameters(widths) == sum(p.numel() for p in layers.parameters())


def test_a_network_needs_two_layers():
    with pytest.raises(ValueError, match="needs at least inputs and outputs"):
        dense_networks.parameters([3])
    with pytest.raises(ValueError, match=r"widths\[1\]=0 must be a whole number"):
        dense_networks.parameters([3, 0, 1])


def counted_flops(a, b):
    """Multiplications and additions of a schoolbook product, one by one; the first addition is to 0."""
    return sum(2 for _ in range(a[0]) for _ in range(b[1]) for _ in range(a[1])), (a[0], b[1])


@pytest.mark.parametrize("sizes", [(3, 5, 7, 2), (1, 4, 4, 9), (6, 1, 5, 1)])
def test_both_orders_cost_what_their_products_do(sizes):
    rows, left, right, columns = sizes
    a, b, c = (rows, left), (left, right), (right, columns)
    ab, first = counted_flops(a, b)
    bc, last = counted_flops(b, c)
    named = {"rows": rows, "left": left, "right": right, "columns": columns}
    assert dense_networks.left_first_flops(**named) == ab + counted_flops(first, c)[0]
    assert dense_networks.right_first_flops(**named) == bc + counted_flops(a, last)[0]


# --- similarity ---


@pytest.mark.parametrize("degrees", [0, 37, 90, 120, 180])
def test_cosine_is_that_of_the_angle_whatever_the_lengths(degrees):
    turned = [5 * math.cos(math.radians(degrees)), 5 * math.sin(math.radians(degrees))]
    assert similarity.cosine([0.2, 0], turned) == pytest.approx(math.cos(math.radians(degrees)), abs=1e-12)


def test_similarity_refuses_what_has_no_angle():
    with pytest.raises(ValueError, match="length_of_b=0.0 must be greater than 0"):
        similarity.cosine([1, 2], [0, 0])
    with pytest.raises(ValueError, match="a has 2 entries and b has 3"):
        similarity.dot([1, 2], [1, 2, 3])


# --- chain rule ---


@pytest.mark.parametrize("first", [0.7, 0.2, 0.0, -0.7])
def test_gradients_are_those_of_autograd_and_of_a_nudge(first):
    net, x, target = chain_rule.TwoLayers(first=first, second=-1.3), 2.5, 4.0
    weights = torch.tensor([first, -1.3], dtype=torch.float64, requires_grad=True)
    ((weights[1] * torch.relu(weights[0] * x) - target) ** 2).backward()
    blame = chain_rule.gradients(net, x=x, target=target)
    assert weights.grad is not None
    assert [blame.first, blame.second] == pytest.approx(weights.grad.tolist())
    assert chain_rule.answer(net, x) == pytest.approx(-1.3 * 2.5 * first if first > 0 else 0.0)
    if not first:
        return  # the slope has a jump there, and a nudge sees half of it
    low, high = (
        chain_rule.loss(chain_rule.TwoLayers(first=first + nudge, second=-1.3), x=x, target=target)
        for nudge in (-1e-4, 1e-4)
    )
    assert blame.first == pytest.approx((high - low) / 2e-4, abs=1e-8)


def test_a_step_goes_downhill():
    net = chain_rule.TwoLayers(first=0.5, second=2.0)
    losses = []
    for _ in range(20):
        losses.append(chain_rule.loss(net, x=3, target=4))
        net = chain_rule.after_step(net, x=3, target=4, learning_rate=0.01)
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] / 100


# --- energy ---


@pytest.mark.parametrize(
    ("hours", "power_w", "tonnes"),  # Touvron et al., Llama 2, 2023, arXiv:2307.09288, table 2, all four rows
    [(184_320, 400, 31.22), (368_640, 400, 62.44), (1_038_336, 350, 153.90), (1_720_320, 400, 291.42)],
)
def test_llama_2_emissions_follow_from_the_overhead_and_the_grid_of_the_llama_paper(hours, power_w, tonnes):
    used = training_energy.energy_j(gpu_s=hours * 3600, power_w=power_w, facility_overhead=1.1)
    assert training_energy.emitted_kg(energy_j=used, kg_per_kwh=0.385) / 1000 == pytest.approx(tonnes, abs=0.011)


def test_a_meter_read_every_hour_shows_the_same_energy():
    readings = numpy.full((5, 48), 700.0)  # 5 GPUs, 48 hours, in Wh
    assert training_energy.energy_j(gpu_s=5 * 48 * 3600, power_w=700, facility_overhead=1) == readings.sum() * 3600


def test_no_building_draws_less_than_its_machines():
    with pytest.raises(ValueError, match="facility_overhead=0.9 must be at least 1"):
        training_energy.energy_j(gpu_s=1, power_w=1, facility_overhead=0.9)
