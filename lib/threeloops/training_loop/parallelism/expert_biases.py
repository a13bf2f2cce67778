"""Expert biases: what it costs to add a bias to every expert's output outside of its product.

A bias of the second matrix is weighted like the output that it belongs to, so that no product can add it. Megatron's
experts add it expert by expert and clamp the gated activation in operations of their own; later releases have kernels
that do both.

>>> moved = expert_bias_bytes(rows=65_536, hidden=2880, intermediate=2880, routing_bytes=4)  # gpt-oss, 4 x 4,096 tokens
>>> round((moved.forward + moved.backward) / 1e9, 1)  # GB in one layer
21.5

Source: Megatron-LM, core_v0.17.0, megatron/core/transformer/moe/experts.py (TEGroupedMLP._apply_bias) and
        megatron/core/fusions/fused_bias_geglu.py (weighted_bias_quick_geglu_impl): the operations
"""

from dataclasses import dataclass

from threeloops import checks


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasBytes:
    """Bytes that one layer moves beyond a kernel that does all at once."""

    activation: float  # of the forward pass, what belongs to the activation
    output: float  # and to the second matrix
    backward: float

    @property
    def forward(self) -> float:
        return self.activation + self.output


def expert_bias_bytes(*, rows: float, hidden: int, intermediate: int, routing_bytes: int) -> BiasBytes:
    """Bytes of the clamps and of the second bias, for so many rows (tokens times experts chosen).

    Formula:  elements of a row times bytes read and written. Forward: both halves of the gate clamped (2 + 2 each), put
              together again (4 + 4): 16 intermediate; bias times weight (w), added to the output (2 + w, w), pieces put
              together (w + w), made 16 bits where w is not 2 (w + 2). Backward: three comparisons of a half with its
              bounds (2 + 1 each), two of them joined (2 + 1), each half's gradient chosen (3 + 2) and both put together
              (4 + 4): 30 intermediate; gradients made w bytes wide and back (2 + w, w + 2), where w is not 2; the
              bias's and the weight's (a product w + w, its sum w, each); pieces put together (2 + 2)
    Units:    w, routing_bytes: of a routing weight, 2 as an all-to-all sends it or 4 as DeepEP and HybridEP do
    Assumes:  16-bit activations; the first bias is added by its product; biases and weights of rows are too few to
              count
    Raises:   ValueError for sizes that are not positive, for weights of other widths
    Source:   the module's
    Measured: tests.training_loop.test_expert_biases.moved_by_torch
    """
    checks.positive(rows=rows, hidden=hidden, intermediate=intermediate)
    if routing_bytes not in (2, 4):
        raise ValueError(f"routing_bytes={routing_bytes} must be 2 or 4: a routing weight has 16 or 32 bits")
    cast = routing_bytes + 2 if routing_bytes != 2 else 0
    return BiasBytes(
        activation=16 * intermediate * rows,
        output=(5 * routing_bytes + 2 + cast) * hidden * rows,
        backward=(30 * intermediate + (6 * routing_bytes + 4 + 2 * cast) * hidden) * rows,
    )
