"""What torch.compile makes of functions: cuts, recompilations; and, where there is a C++ compiler, kernels."""

import os

import pytest
import torch
from torch.nn import functional

from threeloops import stand_in
from threeloops.inner_loop import padding
from threeloops.measure.inner_loop import compiling

X = torch.ones(6, 4)


def scaled(x):
    return (2 * x).relu().sum(0)


def reads_a_value(x):
    y = x * 3
    return y + y.sum().item()


def branches(x):
    y = x * 3
    if y.sum() > 0:
        y = y - 1
    return y * 2


@pytest.mark.parametrize(("function", "graphs"), [(scaled, 1), (reads_a_value, 2), (branches, 2)])
def test_cuts_are_counted(function, graphs):
    with compiling.alone():
        found = torch._dynamo.explain(function)(X)
    assert (found.graph_count, found.graph_break_count) == (graphs, graphs - 1)


def calls(lengths):
    return [(torch.ones(length, 4),) for length in lengths]


def test_constant_shapes_are_compiled_once_per_padded_length():
    lengths = range(10, 60)
    padded = [padding.padded(length=length, multiple=16) for length in lengths]
    expected = padding.num_shapes(shortest=10, longest=59, multiple=16)
    assert compiling.compilations(scaled, calls(padded), dynamic=False)[-1] == expected == 4


def test_a_size_that_changes_becomes_a_symbol_and_one_that_is_declared_is_one_from_the_start():
    assert compiling.compilations(scaled, calls(range(3, 12)), dynamic=None) == [1] + [2] * 8
    assert compiling.compilations(scaled, calls(range(3, 12)), dynamic=True) == [1] * 9
    marked = calls(range(3, 12))
    for (x,) in marked:
        torch._dynamo.mark_dynamic(x, 0)
    assert compiling.compilations(scaled, marked, dynamic=None) == [1] * 9


def test_beyond_the_limit_nothing_is_compiled_any_more():
    assert compiling.compilations(scaled, calls(range(3, 12)), dynamic=False, limit=4) == [1, 2, 3, 4, 4, 4, 4, 4, 4]


def test_equal_layers_are_one_program_by_region_and_one_long_graph_as_a_whole():
    weights = [torch.ones(4, 4) for _ in range(5)]

    def layer(x, weight):
        return (x @ weight).relu()

    def whole(x):
        for weight in weights:
            x = layer(x, weight)
        return x

    assert compiling.traced_operations(whole, X) == [5 * compiling.traced_operations(layer, X, weights[0])[0]] == [10]
    assert compiling.compilations(layer, [(X, weight) for weight in weights], dynamic=None)[-1] == 1


def test_counting_leaves_nothing_behind(capfd):
    compiling.compilations(scaled, calls(range(3, 12)), dynamic=False, limit=2)
    with compiling.alone():
        torch._dynamo.explain(reads_a_value)(X)
    assert capfd.readouterr().err == ""


def test_a_missing_compiler_is_told_in_a_sentence(monkeypatch):
    monkeypatch.setattr(compiling.shutil, "which", lambda name: None)
    assert "apt install g++" in compiling.missing_compiler()
    with pytest.raises(ValueError, match="no C") as missing:
        compiling.generated_kernels(scaled, X)
    assert "no working compiler" in stand_in.reason(missing.value, after_another=False)


@pytest.fixture
def compiler():
    if missing := compiling.missing_compiler():
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)


@pytest.mark.usefixtures("compiler")
def test_the_product_stays_a_library_call_and_what_follows_it_is_one_kernel():
    def head(x, weight, bias):
        return functional.gelu(functional.layer_norm(functional.linear(x, weight, bias), (8,)))

    names = compiling.generated_kernels(head, torch.randn(16, 8), torch.randn(8, 8), torch.randn(8))
    assert len(names) == 2
    assert names[0] == "addmm"
    assert "gelu" in names[1]
    assert "layer_norm" in names[1]
