"""Traced steps: the kernels of one step on a GPU, by torch's profiler, added up by what they are for.

>>> step = traced_step("train_compiled-bf16-layers24-hidden1024-heads16-vocabulary50304-tokens1024-batch8", "h100-sxm5")
>>> list(step)[:3], step["matmuls"].kernels > 400
(['matmuls', 'attention', 'loss'], True)

Source: a recording of our own (`threeloops record --traces`), with its stamp
"""

import functools
from collections.abc import Mapping
from typing import NamedTuple

from threeloops import checks
from threeloops.facts.recorded import Stamp
from threeloops.facts.stamped_files import stamped, stamped_text

STEPS = "steps"
# What a kernel is for, from words of its name, in this order: the first that fits.
CAUSES = {
    "optimiser": ("multi_tensor", "FusedOptimizer", "fused_adam"),
    "attention": (
        "sdpa",
        "flash",
        "fmha",
        "Fmha",
        "attention",
        "attn_",
        "compute_dot_do_o",
        "convert_dq",
        "lean_reduction",
    ),
    "convolutions": (
        "implicit_gemm",
        "ImplicitGemm",
        "fprop",
        "wgrad",
        "dgrad",
        "winograd",
        "conv2d",
        "conv_depthwise",
        *("igemm_fwd", "igemm_bwd", "igemm_wrw", "grouped_conv"),  # of AMD's MIOpen and Composable Kernel
    ),
    "experts": ("fused_moe", "moe_align", "moe::", "GroupProblemShape", "grouped_gemm"),
    "matmuls": (
        *("nvjet", "gemm", "Cijk_", "gemv", "cutlass", "splitKreduce", "marlin", "Marlin"),
        *("bmm_", "triton_tem_"),  # of TensorRT-LLM; what torch.compile makes from a template
        *("fc-dtype", "batch_matmul-"),  # of Meta's MTIA
    ),
    "loss": ("SoftMax", "softmax", "nll_loss"),
    "norms": (
        *("layer_norm", "LayerNorm", "GammaBeta", "rms_norm", "RMSNorm", "rmsnorm", "batch_norm", "::bn_"),
        *("GroupNorm", "groupnorm"),
    ),
    "embeddings": ("embedding", "Embedding", "indexSelect"),
    "casts and copies": ("copy", "Copy", "Memcpy", "Memset", "nchwToNhwc", "nhwcToNchw", "FillFunctor"),
}
REST = "other vector work"
# torch.compile names what it fuses after all operators that took part, products among them: these pass over memory.
FUSED, VECTOR_CAUSES = ("triton_poi_", "triton_red_", "triton_per_"), ("loss", "norms", "embeddings")
LIBRARY = "fbgemm"  # of which most kernels are of tables and jagged rows: its name has "gemm" in it, and says nothing
ORDER = (
    *("matmuls", "convolutions", "experts", "attention", "loss", "optimiser"),
    *("norms", "embeddings", "casts and copies", REST),
)


class Traced(NamedTuple):
    """The kernels of one cause."""

    kernels: int
    seconds: float  # on the GPU, added up


def cause_of(kernel: str) -> str:
    """What a kernel is for.

    >>> cause_of("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT"), cause_of("triton_poi_fused_gelu_2")
    ('matmuls', 'other vector work')
    >>> cause_of("void split_embedding_forward<float>(fbgemm_gpu::Row<float>)")
    'embeddings'
    >>> cause_of("triton_poi_fused__scaled_dot_product_flash_attention_cat_10"), cause_of("attn_fwd.kd")
    ('other vector work', 'attention')
    """
    name = kernel.replace(LIBRARY, "")
    causes = VECTOR_CAUSES if name.startswith(FUSED) else CAUSES
    return next((cause for cause in causes if any(word in name for word in CAUSES[cause])), REST)


def traced_step(case: str, part: str) -> dict[str, Traced]:
    """One step, by cause, in ORDER; causes without a kernel are left out.

    Raises:   ValueError for a part or a case of which no step was traced
    """
    checks.one_of(_traced(), part=part)
    steps = _traced()[part][1]
    checks.one_of(steps, case=case)
    return steps[case]


@functools.cache
def _traced() -> dict[str, tuple[Stamp, dict[str, dict[str, Traced]]]]:
    def read(step: dict[str, list[float]]) -> dict[str, Traced]:
        return {cause: Traced(int(step[cause][0]), step[cause][1]) for cause in ORDER if cause in step}

    return {
        part: (stamp, {case: read(step) for case, step in steps.items()})
        for part, (stamp, steps) in stamped("traced", STEPS).items()
    }


def traces_as_text(stamp: Stamp, steps: Mapping[str, Mapping[str, Traced]]) -> str:
    """The file of a recording."""
    rows = {case: {cause: list(one) for cause, one in step.items()} for case, step in steps.items()}
    return stamped_text(stamp, STEPS, rows)
