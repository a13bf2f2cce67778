"""FLOPs that torch itself counts while it runs real code.

torch's counter knows a formula per operator and counts an operator without one as 0, silently. Two that matter have
none: fused attention on a CPU, and the grouped product in which transformers runs a mixture of experts. counted_flops
teaches the counter both, and names the other operators that went by uncounted.

>>> linear = torch.nn.Linear(64, 32, bias=False)
>>> counted_flops(linear, torch.randn(8, 64)).total
32768

Source: torch.utils.flop_counter, torch 2.13
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

aten = torch.ops.aten


def _cpu_attention(query: Any, key: Any, value: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    return int(sdpa_flop_count(query, _all_heads(query, key), _all_heads(query, value)))


def _cpu_attention_backward(
    grad: Any, query: Any, key: Any, value: Any, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    return int(sdpa_backward_flop_count(grad, query, _all_heads(query, key), _all_heads(query, value)))


def _all_heads(query: Any, key: Any) -> tuple[int, ...]:
    """The key's shape as if every query head had one of its own: sharing keys saves bytes, not multiplications."""
    return (key[0], query[1], *key[2:])


def _grouped_product(a: Any, b: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Rows of `a` meet one matrix of `b` each; without a group axis on either side, the groups are stretches of the
    shared axis.
    """
    groups = a[0] if len(a) == len(b) == 3 else 1
    return int(groups * 2 * a[-2] * a[-1] * b[-1])


# torch 2.13 has no formula for these.
MISSING_FORMULAS = {
    aten._scaled_dot_product_flash_attention_for_cpu: _cpu_attention,
    aten._scaled_dot_product_flash_attention_for_cpu_backward: _cpu_attention_backward,
    aten._grouped_mm: _grouped_product,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedFlops:
    """What the counter saw."""

    by_operator: tuple[tuple[str, int], ...]  # largest first
    uncounted: tuple[str, ...]  # operators that ran, made new values and have no formula; each once, in name order

    @property
    def total(self) -> int:
        """FLOPs of all operators with a formula: matrix products, convolutions, attention."""
        return sum(flops for _, flops in self.by_operator)


def counted_flops(function: Callable[..., Any], *args: Any, **kwargs: Any) -> CountedFlops:
    """FLOPs of one call of `function`, a module or any callable, by operator.

    Assumes:  multiply-add is 2; causal attention is counted as the full square (where torch runs it fused); biases
              are not counted; a tensor on the "meta" device counts the same and computes nothing
    """
    counter, seen = FlopCounterMode(display=False, custom_mapping=MISSING_FORMULAS), _Seen()
    with seen, counter:
        function(*args, **kwargs)
    counts = counter.get_flop_counts().get("Global", {})
    return CountedFlops(
        by_operator=tuple(
            sorted(
                ((str(operator), int(flops)) for operator, flops in counts.items()), key=lambda row: (-row[1], row[0])
            )
        ),
        uncounted=tuple(
            sorted({str(operator) for operator in seen.operators if operator not in counter.flop_registry})
        ),
    )


class _Seen(TorchDispatchMode):
    """Notes every operator that reaches the device."""

    def __init__(self) -> None:
        super().__init__()
        self.operators: set[Any] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not getattr(func, "is_view", False):
            self.operators.add(getattr(func, "overloadpacket", func))
        return func(*args, **(kwargs or {}))
