"""Utilisation: the share of a peak that went into a model's FLOPs, without recomputation (MFU) and with it (HFU), and
the FLOPs of a token as it is published with an MFU.

Source: Chowdhery et al., PaLM, 2022, arXiv:2204.02311, section 4.1 and appendix B
"""

from dataclasses import dataclass

from threeloops import checks
from threeloops.models.model_flops import TrainingFlops, six_n_d
from threeloops.operations import kernels


def mfu(*, model_flops_per_s: float, peak_flops_per_s: float) -> float:
    """Model FLOPs utilisation, MFU: the share of the peak that went into FLOPs which the mathematics needs.

    Formula:  model_flops_per_s / peak_flops_per_s
    Units:    both of one device or both of all devices together; the FLOPs that recomputation adds are not in
              model_flops_per_s (they are in HFU)
    Assumes:  the dense peak of the format that trains. More than 1 is not refused: it means that the step skips what
              the convention charges (causal="full")
    Raises:   ValueError unless both rates are positive
    Source:   Chowdhery et al., PaLM, 2022, arXiv:2204.02311, section 4.1 and appendix B
    Measured: tests.models.test_model_flops.test_mfu_from_two_rates_as_published

    >>> round(mfu(model_flops_per_s=430e12, peak_flops_per_s=989.4e12), 2)  # Llama 3 405B on 8,192 GPUs; printed 43 %
    0.43
    """
    checks.positive(model_flops_per_s=model_flops_per_s, peak_flops_per_s=peak_flops_per_s)
    return model_flops_per_s / peak_flops_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilisation:
    """Shares of the peak, 0 to 1, and the conventions behind them."""

    mfu: float  # model FLOPs, without recomputation
    hfu: float  # executed FLOPs
    model_flops_per_s: float  # per device
    causal: str
    recompute: str


def utilisation(training: TrainingFlops, *, step_s: float, num_gpus: int, peak_flops_per_s: float) -> Utilisation:
    """MFU and HFU of a training step that took `step_s` on `num_gpus`.

    Formula:  mfu = model / (step_s * num_gpus * peak_flops_per_s);  hfu: the same with hardware
    Assumes:  the dense peak of the format that trains; more than 1 means that the step skips what the convention
              charges (causal="full")
    Source:   Chowdhery et al., PaLM, 2022, arXiv:2204.02311, section 4.1 and appendix B
    Measured: tests.models.test_model_flops.test_palm_utilisation_as_published
    """
    checks.positive(step_s=step_s, peak_flops_per_s=peak_flops_per_s)
    checks.count(num_gpus=num_gpus)
    device_s = step_s * num_gpus
    return Utilisation(
        mfu=mfu(model_flops_per_s=training.model / device_s, peak_flops_per_s=peak_flops_per_s),
        hfu=training.hardware / (device_s * peak_flops_per_s),
        model_flops_per_s=training.model / device_s,
        causal=training.forward.causal,
        recompute=training.recompute,
    )


def dense_flops_per_token(
    *, num_parameters: float, num_layers: int, num_heads: int, head_dim: int, sequence: int, causal: str
) -> float:
    """FLOPs of training a dense model on one token of a sequence, from five published numbers.

    Formula:  6 * num_parameters + 12 * num_layers * num_heads * head_dim * attended pairs / sequence; the pairs are
              sequence**2 for "full" and half of that for "half"
    Units:    num_parameters in the matrices, output head included; num_heads of the queries
    Assumes:  backward is twice the work of forward; nothing is recomputed; every layer attends to the whole sequence
    Raises:   ValueError for an unknown convention, with the known ones
    Source:   Chowdhery et al., PaLM, 2022, arXiv:2204.02311, appendix B (full); Narayanan et al., 2021,
              arXiv:2104.04473, appendix
    Counted:  drills.step_time.progress.CONTEXT

    >>> dense_flops_per_token(
    ...     num_parameters=7e9, num_layers=30, num_heads=40, head_dim=100, sequence=20_000, causal="half"
    ... ) / 1e9
    56.4
    """
    checks.count(num_layers=num_layers, num_heads=num_heads, head_dim=head_dim, sequence=sequence)
    pairs = kernels.attended_pairs(query_tokens=sequence, context_tokens=sequence, causal=causal)
    attention = 12 * num_layers * num_heads * head_dim * pairs / sequence
    return six_n_d(num_parameters=num_parameters, tokens=1) + attention


def mfu_from_hfu(*, hfu: float, recomputed_share: float) -> float:
    """MFU of a run that executes a share `hfu` of the peak and runs a part of its forward pass twice.

    Formula:  hfu * 3 / (3 + recomputed_share)
    Units:    recomputed_share of the forward pass, in FLOPs: 1 where all of it is run again
    Assumes:  backward is twice the work of forward
    Raises:   ValueError for an hfu that is not positive, or a recomputed_share that is none
    Source:   Korthikanti et al., 2022, arXiv:2205.05198, section 5; Chowdhery et al., PaLM, 2022, arXiv:2204.02311,
              appendix B
    Counted:  drills.step_time.progress.RECOMPUTE

    >>> mfu_from_hfu(hfu=0.44, recomputed_share=0.3)
    0.4
    """
    checks.positive(hfu=hfu)
    checks.fraction(recomputed_share=recomputed_share)
    return hfu * 3 / (3 + recomputed_share)
