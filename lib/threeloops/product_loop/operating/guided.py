"""Answers that a grammar holds to: a mask over the vocabulary for each sequence, each step.

>>> mask_bytes(vocabulary=128_256, sequences=1)
16032
"""

import math

from threeloops import checks

WORD_BITS, WORD_BYTES = 32, 4


def mask_bytes(*, vocabulary: int, sequences: int) -> int:
    """Bytes of the masks of one step: a bit for each token, in words of 32 bits.

    Formula:  sequences * ceil(vocabulary / 32) * 4
    Source:   dottxt, outlines-core, python/outlines_core/kernels/torch.py, 2025 (a row of (vocabulary + 31) // 32
              words of int32); vLLM, vllm/v1/worker/gpu/structured_outputs.py, 2026 (as many, copied to the GPU)
    Counted:  drills.decode_speed.guided.MASKS
    """
    checks.count(vocabulary=vocabulary, sequences=sequences)
    return sequences * -(-vocabulary // WORD_BITS) * WORD_BYTES


def guided_step_s(*, gpu_s: float, mask_s: float, sequences: int, workers: int, sample_s: float) -> float:
    """Time of a decode step whose masks are made on the host while the GPU works, and needed before it samples.

    Formula:  max(gpu, ceil(sequences / workers) * mask) + sample
    Units:    mask_s for the mask of one sequence on one worker
    Assumes:  masks for a step can be begun with the step; workers do not slow each other down
    Source:   by definition: the later of two that run side by side
    Counted:  drills.decode_speed.guided.STEP

    >>> guided_step_s(gpu_s=0.02, mask_s=0.001, sequences=64, workers=2, sample_s=0.001)
    0.033
    """
    checks.positive(gpu_s=gpu_s, mask_s=mask_s)
    checks.non_negative(sample_s=sample_s)
    checks.count(sequences=sequences, workers=workers)
    return max(gpu_s, math.ceil(sequences / workers) * mask_s) + sample_s
