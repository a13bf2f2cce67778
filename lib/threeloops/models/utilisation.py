"""Utilisation: the share of a peak that went into a model's FLOPs, without recomputation (MFU) and with it (HFU).

Source: Chowdhery et al., PaLM, 2022, arXiv:2204.02311, section 4.1 and appendix B
"""

from dataclasses import dataclass

from threeloops import checks
from threeloops.models.model_flops import TrainingFlops


def mfu(*, model_flops_per_s: float, peak_flops_per_s: float) -> float:
    """Model FLOPs utilisation, MFU: the share of the peak that went into FLOPs which the mathematics needs.

    Formula:  model_flops_per_s / peak_flops_per_s
    Units:    both of one device or both of all devices together; the FLOPs that recomputation adds are not in
              model_flops_per_s (they are in HFU)
    Assumes:  the dense peak of the format that trains. More than 1 is not refused: it means that the step skips what
              the convention charges (causal="full")
    Raises:   ValueError unless both rates are positive
    Source:   Chowdhery et al., PaLM, 2022, arXiv:2204.02311, section 4.1 and appendix B

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
