"""Recurrent operations: the kernels of a layer that keeps a state in place of a cache, for one forward pass.

>>> layer = DeltaState(key_heads=16, value_heads=32, key_head_dim=128, value_head_dim=128, conv_entries=4)
>>> step = ForwardStep(
...     phase="decode", batch=1, sequence=2048, causal="full", fused_attention=True, logits="all", bytes_per_element=2
... )
>>> [op.name for op in recurrent_ops(layer, hidden=2048, step=step)][:3]
['input_projection', 'convolution', 'state_update']
"""

from threeloops.models.forward_step import MATRIX, VECTOR, ForwardStep, Op
from threeloops.models.recurrent_layers import DeltaState, StateSpace
from threeloops.operations import kernels
from threeloops.operations.roofline import Work
from threeloops.operations.scan_kernels import MATRIX_BYTES

_SILU = kernels.ACTIVATION_FLOPS["silu"]


def recurrent_ops(layer: DeltaState | StateSpace, *, hidden: int, step: ForwardStep) -> tuple[Op, ...]:
    """Projection in, convolution, scan (or, for one token, update), norm, gate, projection out.

    Formula:  the products and the scan as DeltaState and StateSpace count them; convolution: 2 * conv_entries + silu
              per channel and token; the state moves in fp32: written once by a scan, read and written by an update
    Assumes:  a scan is one kernel that reads the convolution's output and writes its own, and keeps what passes from
              chunk to chunk on the chip; steps, decays, the norms of queries and keys and the skip of Mamba 2 ride in
              it and cost nothing; the convolution's kept inputs are read and written in decode only
    Source:   as DeltaState and StateSpace
    Counted:  tests.models.recurrent_scans.delta_by_token

    >>> layer = StateSpace(
    ...     num_heads=96, head_dim=64, state_dim=128, groups=8, conv_entries=4, conv_bias=True, bias=False, chunk=128
    ... )
    >>> step = ForwardStep(
    ...     phase="decode", batch=1, sequence=99, causal="full", fused_attention=True, logits="all", bytes_per_element=2
    ... )
    >>> update = recurrent_ops(layer, hidden=4096, step=step)[2]
    >>> update.name, round(update.work.arithmetic_intensity, 2)  # 5 FLOPs for 8 bytes
    ('state_update', 0.62)
    """
    rows, element = step.tokens, step.bytes_per_element
    bias = isinstance(layer, StateSpace) and layer.bias
    read_out = rows * layer.output_dim
    norm = kernels.rmsnorm(
        rows=rows * layer.norms_per_token, width=layer.output_dim // layer.norms_per_token, bytes_per_element=element
    )
    gate = kernels.elementwise(elements=read_out, flops_per_element=_SILU + 1, inputs=2, bytes_per_element=element)
    return (
        _product("input_projection", step, n=layer.input_columns, k=hidden, bias=bias),
        Op(name="convolution", unit=VECTOR, work=_convolution(layer, step)),
        _scan(layer, step) if step.phase == "prefill" else _update(layer, step),
        *((Op(name="state_norm", unit=VECTOR, work=norm),) if layer.norm_width else ()),
        Op(name="output_gate", unit=VECTOR, work=gate),
        _product("output_projection", step, n=hidden, k=layer.output_dim, bias=bias),
    )


def _product(name: str, step: ForwardStep, *, n: int, k: int, bias: bool) -> Op:
    work = kernels.gemm(
        m=step.tokens,
        n=n,
        k=k,
        bytes_per_element=step.bytes_per_element,
        weight_bytes_per_element=step.weight_bytes_per_element,
        bias=bias,
    )
    return Op(name=name, unit=MATRIX, work=work)


def _convolution(layer: DeltaState | StateSpace, step: ForwardStep) -> Work:
    """One filter per channel, and silu behind it; a token alone finds its predecessors in what was kept."""
    kept = 2 * step.batch * layer.conv_elements if step.phase == "decode" else 0
    moved = 2 * step.tokens * layer.conv_channels + layer.conv_elements + kept
    return Work(
        flops=step.tokens * layer.conv_channels * (2 * layer.conv_entries + _SILU),
        moved_bytes=moved * step.bytes_per_element,
    )


def _scan(layer: DeltaState | StateSpace, step: ForwardStep) -> Op:
    moved = step.tokens * (layer.conv_channels + layer.output_dim) * step.bytes_per_element
    work = Work(
        flops=step.batch * layer.scan_flops(tokens=step.sequence, causal=step.causal),
        moved_bytes=moved + step.batch * layer.state_elements * MATRIX_BYTES,
        conventions=(f"chunk={layer.chunk}", f"causal={step.causal}"),
    )
    return Op(name="state_scan", unit=MATRIX, work=work)


def _update(layer: DeltaState | StateSpace, step: ForwardStep) -> Op:
    moved = step.batch * (layer.conv_channels + layer.output_dim) * step.bytes_per_element
    work = Work(
        flops=step.batch * layer.update_flops,
        moved_bytes=moved + 2 * step.batch * layer.state_elements * MATRIX_BYTES,
    )
    return Op(name="state_update", unit=VECTOR, work=work)
