"""Product rates against measured shapes that the curve was not made of, FLOPs counted elsewhere, and limits."""

from dataclasses import replace

import pytest

from threeloops.facts.gemm_sweep import GemmSweep, gemm_sweep
from threeloops.models import catalogue
from threeloops.models.architecture import Attention
from threeloops.models.model_flops import forward_flops
from threeloops.training_loop.parallelism import planner, product_rates, published_layouts

# (products at once, rows, columns, inner length, FLOP/s): of the same published table, none of them square
LEFT_OUT = (
    (1, 1024, 4096, 4096, 738474431911967),
    (1, 2048, 1024, 4096, 653127630170316),
    (2, 2048, 2048, 1024, 600191069871436),
    (4, 1024, 1024, 2048, 626088527113702),
    (1, 4096, 1024, 1024, 488064465454545),
    (4, 4096, 2048, 512, 607491838189533),
    (2, 1024, 4096, 256, 298261617777777),
    (4, 2048, 4096, 4096, 801942750700917),
    (1, 2048, 4096, 512, 450395060402684),
    (4, 1024, 2048, 4096, 743588520775623),
)


@pytest.mark.parametrize(("batch", "rows", "columns", "inner", "measured"), LEFT_OUT)
def test_the_curve_foretells_shapes_that_it_was_not_made_of(batch, rows, columns, inner, measured):
    rate = product_rates.relative_rate(outputs=batch * rows * columns, inner=inner)
    assert rate * gemm_sweep().best_flops_per_s == pytest.approx(measured, rel=0.09)


def test_at_its_points_the_curve_is_the_table():
    sweep = gemm_sweep()
    for outputs, rates in zip(sweep.outputs, sweep.flops_per_s, strict=True):
        for inner, rate in zip(sweep.inners, rates, strict=True):
            share = product_rates.relative_rate(outputs=outputs, inner=inner)
            assert share * sweep.best_flops_per_s == pytest.approx(rate)


@pytest.mark.parametrize("name", ["llama-3-8b", "llama-3-405b", "gpt2-xl"])
def test_the_products_of_all_layers_have_the_flops_of_the_projections(name):
    model = catalogue.model(name)
    flops = forward_flops(model, batch=1, sequence=1024, causal="half", logits="all")
    made = sum(
        count * product.flops
        for layer, count in model.groups
        for product in product_rates.layer_products(layer, hidden=model.hidden, rows=1024, tp=1, ep=1)
    )
    assert made == pytest.approx(flops.projections)


def test_experts_have_them_but_for_the_router():
    model = catalogue.model("deepseek-v3")
    flops = forward_flops(model, batch=1, sequence=1024, causal="half", logits="all")
    made = sum(
        count * product.flops
        for layer, count in model.groups
        for product in product_rates.layer_products(layer, hidden=model.hidden, rows=1024, tp=1, ep=1)
    )
    routers = sum(
        count * 2 * 1024 * model.hidden * layer.mlp.num_experts
        for layer, count in model.groups
        if hasattr(layer.mlp, "num_experts")
    )
    assert made + routers == pytest.approx(flops.projections)


@pytest.mark.parametrize("name", ["deepseek-v3", "nemotron-3-super-120b-a12b", "gpt-oss-120b"])
def test_the_ranks_of_a_tensor_group_split_the_experts_rows(name):
    """Each computes half of what one alone would, whether experts read tokens or latents."""
    model = catalogue.model(name)
    alone, one_of_two = (
        sum(
            count * product.flops
            for layer, count in model.groups
            for product in product_rates.layer_products(layer, hidden=model.hidden, rows=1024, tp=tp, ep=8)
            if product.role in ("experts", "shared")
        )
        for tp in (1, 2)
    )
    assert one_of_two == pytest.approx(alone / 2)


def test_every_product_of_a_layer_says_what_it_is_for():
    seen = {
        product.role
        for name in ("llama-3-8b", "deepseek-v3", "nemotron-3-super-120b-a12b")
        for layer, _ in catalogue.model(name).groups
        for product in product_rates.layer_products(layer, hidden=4096, rows=1024, tp=1, ep=1)
    }
    assert seen == set(product_rates.ROLES)


def test_thinner_products_are_slower_and_none_beats_the_best():
    def rate(rows):
        return product_rates.training_rate([product_rates.Product(rows=rows, columns=4096, inner=4096)])

    rates = [rate(rows) for rows in (64, 256, 1024, 4096, 65_536)]
    assert rates == sorted(rates)
    assert rates[0] < 0.5 < 0.95 < rates[-1] <= 1


def test_a_planner_that_knows_shapes_promises_less_and_never_more_memory():
    row = published_layouts.published("megatron-39b")
    plain = published_layouts.planned_as_published(row)
    by_shape = planner.planned(plain.layout, job=row.job, cluster=replace(row.cluster, rates_by_shape=True))
    assert 0.9 < by_shape.tokens_per_gpu_s / plain.tokens_per_gpu_s < 1
    assert by_shape.memory_bytes == plain.memory_bytes


def test_a_layout_of_thin_products_loses_most():
    row = published_layouts.published("llama-3-405b-8k")
    thin = replace(published_layouts.planned_as_published(row).layout, tp=1, cp=16, pp=32, dp=16, chunks=4)
    cut = replace(thin, tp=8, cp=1, dp=32)

    def kept(layout):
        plain, shaped = (
            planner.planned(layout, job=row.job, cluster=replace(row.cluster, rates_by_shape=by)).step.compute_s
            for by in (False, True)
        )
        return plain / shaped

    assert kept(thin) < kept(cut)


def test_refusals():
    with pytest.raises(ValueError, match="at least one Product"):
        product_rates.training_rate([])
    with pytest.raises(ValueError, match="must rise"):
        GemmSweep(outputs=(2, 1), inners=(1,), flops_per_s=((1.0,), (1.0,)))
    with pytest.raises(ValueError, match="1 rows of rates for 2"):
        GemmSweep(outputs=(1, 2), inners=(1,), flops_per_s=((1.0,),))


def table_rate(outputs, inner):
    """The sweep's own number."""
    sweep = gemm_sweep()
    return sweep.flops_per_s[sweep.outputs.index(outputs)][sweep.inners.index(inner)]


def test_products_one_after_the_other_at_the_rates_of_the_table():
    """A product of 1,024 x 4,096 over 1,024 and its two backward products, on places where the table was measured."""
    flops, seconds = 0, 0.0
    for rows, columns, inner in ((1024, 4096, 1024), (1024, 1024, 4096), (1024, 4096, 1024)):
        flops += 2 * rows * columns * inner
        seconds += 2 * rows * columns * inner / table_rate(rows * columns, inner)
    one = product_rates.Product(rows=1024, columns=4096, inner=1024)
    share = product_rates.training_rate([one])
    assert share == pytest.approx(flops / seconds / gemm_sweep().best_flops_per_s)


def test_scores_and_values_one_after_the_other_at_the_rates_of_the_table():
    heads, tokens, width = 16, 1024, 256
    flops = 2 * heads * tokens * tokens * width
    seconds = flops / table_rate(heads * tokens * tokens, width) + flops / table_rate(heads * tokens * width, tokens)
    attention = Attention(num_heads=32, num_kv_heads=32, head_dim=width)
    share = product_rates.scores_rate(attention, sequences=1, sequence=tokens, tp=2)
    assert share == pytest.approx(2 * flops / seconds / gemm_sweep().best_flops_per_s)
