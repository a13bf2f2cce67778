"""Kernels: the FLOPs and the bytes of single operations, all under one name.

Matrix products and convolutions are in matrix_kernels, attention is in attention, and what multiplies no matrices in
vector_kernels.

>>> gemm(m=4096, n=4096, k=4096, bytes_per_element=2) + elementwise(
...     elements=4096**2, flops_per_element=1, inputs=2, bytes_per_element=2
... )
Work(flops=137455730688, moved_bytes=201326592, conventions=())
"""

from threeloops.operations.attention import (
    UnfusedAttention,
    attended_pairs,
    attention,
    attention_backward_flops,
    unfused_attention,
)
from threeloops.operations.matrix_kernels import conv2d, conv2d_out_size, gemm, tiled_gemm, tiled_stencil_bytes
from threeloops.operations.vector_kernels import (
    ACTIVATION_FLOPS,
    activation,
    elementwise,
    embedding,
    layernorm,
    rmsnorm,
    softmax,
)

__all__ = [
    "ACTIVATION_FLOPS",
    "UnfusedAttention",
    "activation",
    "attended_pairs",
    "attention",
    "attention_backward_flops",
    "conv2d",
    "conv2d_out_size",
    "elementwise",
    "embedding",
    "gemm",
    "layernorm",
    "rmsnorm",
    "softmax",
    "tiled_gemm",
    "tiled_stencil_bytes",
    "unfused_attention",
]
