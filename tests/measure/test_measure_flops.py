"""torch's FLOP counter, taught what it lacks: attention on a CPU and the grouped product of experts."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from threeloops.measure.inner_loop.flops import counted_flops

torch.set_num_threads(1)


def plain(function):
    """What torch's counter says without our help."""
    counter = FlopCounterMode(display=False)
    with counter:
        function()
    return counter.get_total_flops()


def qkv(kv_heads, device, grad=False):
    return [torch.randn(2, heads, 20, 16, device=device, requires_grad=grad) for heads in (6, kv_heads, kv_heads)]


@pytest.mark.parametrize("kv_heads", [6, 2, 1])
@pytest.mark.parametrize("causal", [True, False])
def test_cpu_attention_counts_what_the_meta_device_counts(kv_heads, causal):
    def attention(device):
        return lambda: F.scaled_dot_product_attention(*qkv(kv_heads, device), is_causal=causal, enable_gqa=True)

    # The trap: on the CPU torch's own counter sees nothing. On "meta" attention falls apart into products that it
    # knows.
    assert plain(attention("cpu")) == 0
    assert (
        counted_flops(attention("cpu")).total
        == plain(attention("meta"))
        == counted_flops(attention("meta")).total
        == 4 * 2 * 6 * 20 * 20 * 16
    )


@pytest.mark.parametrize(("queries", "keys", "kv_heads"), [(1, 30, 6), (1, 30, 2), (7, 19, 3)])
def test_cpu_attention_to_a_cache_counts_what_the_meta_device_counts(queries, keys, kv_heads):
    def attention(device):
        q, k, v = torch.randn(2, 6, queries, 16, device=device), *torch.randn(2, 2, kv_heads, keys, 16, device=device)
        return lambda: F.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    assert plain(attention("cpu")) == 0
    assert counted_flops(attention("cpu")).total == plain(attention("meta")) > 0


@pytest.mark.parametrize("kv_heads", [6, 2])
def test_backward_of_fused_attention_is_five_products_and_of_plain_attention_four(kv_heads):
    def step(device):
        q, k, v = qkv(kv_heads, device, grad=True)
        return lambda: F.scaled_dot_product_attention(q, k, v, enable_gqa=True).sum().backward()

    product = 2 * 2 * 6 * 20 * 20 * 16
    assert counted_flops(step("meta")).total == (2 + 4) * product
    # The fused kernel kept no scores and computes them again.
    assert counted_flops(step("cpu")).total == (2 + 5) * product


def test_grouped_products_are_counted_where_torch_counts_none():
    a, b = torch.randn(24, 16, dtype=torch.bfloat16), torch.randn(3, 16, 8, dtype=torch.bfloat16)
    ends = torch.tensor([8, 8, 24], dtype=torch.int32)

    def grouped():
        return torch._grouped_mm(a, b, offs=ends)

    def one_by_one():
        return torch.cat([a[start:end] @ b[i] for i, (start, end) in enumerate([(0, 8), (8, 8), (8, 24)])])

    torch.testing.assert_close(grouped(), one_by_one())
    assert plain(grouped) == 0
    assert counted_flops(grouped).total == plain(one_by_one) == 2 * 24 * 16 * 8


def test_grouped_products_of_equal_groups_and_of_a_split_inner_axis():
    a, b = torch.randn(3, 8, 16, dtype=torch.bfloat16), torch.randn(3, 16, 24, dtype=torch.bfloat16)
    assert counted_flops(torch._grouped_mm, a, b).total == plain(lambda: torch.bmm(a, b)) == 2 * 3 * 8 * 16 * 24
    # The gradient of the weights: groups are stretches of the inner axis, each makes a matrix of its own.
    left, right, ends = (
        torch.randn(8, 48, dtype=torch.bfloat16),
        torch.randn(48, 24, dtype=torch.bfloat16),
        torch.tensor([16, 48], dtype=torch.int32),
    )
    assert torch._grouped_mm(left, right, offs=ends).shape == (2, 8, 24)
    one_by_one = plain(lambda: [left[:, :16] @ right[:16], left[:, 16:] @ right[16:]])
    assert counted_flops(lambda: torch._grouped_mm(left, right, offs=ends)).total == one_by_one


def test_a_module_by_operator_with_what_has_no_formula():
    model = torch.nn.Sequential(torch.nn.Linear(12, 40), torch.nn.GELU(), torch.nn.Linear(40, 5, bias=False))
    counted = counted_flops(model, torch.randn(7, 12))
    assert counted.by_operator == (("aten.addmm", 2 * 7 * 12 * 40), ("aten.mm", 2 * 7 * 40 * 5))
    assert counted.total == 2 * 7 * (12 * 40 + 40 * 5)
    assert counted.uncounted == ("aten.gelu",)


def test_counting_leaves_the_result_and_the_counter_as_they_were():
    x, results = torch.randn(4, 4), []
    before = plain(lambda: F.scaled_dot_product_attention(*qkv(6, "cpu")))
    counted = counted_flops(lambda factor: results.append(x @ x * factor), factor=3)
    assert counted.total == 2 * 4**3
    torch.testing.assert_close(results[0], x @ x * 3)
    assert plain(lambda: F.scaled_dot_product_attention(*qkv(6, "cpu"))) == before == 0


def test_meta_tensors_count_a_product_too_large_to_run():
    huge = torch.empty(200_000, 200_000, device="meta")
    assert counted_flops(torch.mm, huge, huge).total == 2 * 200_000**3
