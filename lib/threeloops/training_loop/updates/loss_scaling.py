"""Loss scaling: multiply the loss, and with it every gradient, so that small gradients survive a format with little
range.

A dynamic scaler starts high, halves the scale and skips the step whenever a gradient overflows, and doubles it after
a long time without.

Source: Micikevicius et al., 2018, arXiv:1710.03740, sections 3.2 and 4; torch.amp.GradScaler (2.13) for the rule and
        its defaults
"""

import math
from dataclasses import dataclass

from threeloops import checks
from threeloops.inner_loop.number_formats import Format, spacing


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaler:
    """The rule of a dynamic loss scaler; the defaults are torch's."""

    initial: float = 2.0**16
    growth: float = 2.0
    backoff: float = 0.5
    interval: int = 2000  # steps without overflow before the scale grows

    def __post_init__(self) -> None:
        checks.positive(initial=self.initial, growth=self.growth, backoff=self.backoff)
        checks.count(interval=self.interval)
        if self.growth <= 1 or self.backoff >= 1:
            raise ValueError(
                f"growth={self.growth!r} must be above 1 and backoff={self.backoff!r} below 1; torch uses 2.0 and 0.5"
            )


def overflows_from(form: Format) -> float:
    """The first value that becomes infinity: half a gap beyond the largest number.

    Source:   IEEE 754-2019, section 7.4

    >>> from threeloops.inner_loop.number_formats import FP16
    >>> overflows_from(FP16)
    65520.0
    """
    return form.largest + spacing(form.largest, form) / 2


def vanishes_up_to(form: Format, *, scale: float = 1.0) -> float:
    """The largest gradient that a loss scale leaves at zero.

    Formula:  smallest subnormal / 2 / scale; halfway between zero and the smallest number, rounding to even takes
              zero
    Measured: measure.inner_loop.number_formats.cast

    >>> from threeloops.inner_loop.number_formats import FP16
    >>> vanishes_up_to(FP16), vanishes_up_to(FP16, scale=1024)
    (2.9802322387695312e-08, 2.9103830456733704e-11)
    """
    checks.positive(scale=scale)
    return form.smallest_subnormal / 2 / scale


def first_skips(scaler: Scaler, *, largest_gradient: float, form: Format) -> int:
    """Steps that a fresh scaler skips before its first update.

    Formula:  floor(log(initial × largest gradient / overflow) / log(1 / backoff)) + 1, or 0 when the first scale
              already fits
    Assumes:  the largest gradient stays the same while the scale comes down
    Counted:  simulate.training_loop.loss_scaler.play

    >>> from threeloops.inner_loop.number_formats import FP16
    >>> first_skips(Scaler(), largest_gradient=10, form=FP16)
    4
    """
    checks.positive(largest_gradient=largest_gradient)
    too_large_by = scaler.initial * largest_gradient / overflows_from(form)
    return max(0, math.floor(math.log(too_large_by) / -math.log(scaler.backoff)) + 1)


def skipped_share(scaler: Scaler) -> float:
    """Share of steps that a settled scaler throws away.

    Formula:  1 / (interval + 1): after `interval` good steps it doubles, overflows once, and halves back
    Assumes:  growth undone by one backoff, as in torch's defaults, and a largest gradient that does not change
    Counted:  simulate.training_loop.loss_scaler.play

    >>> skipped_share(Scaler())
    0.0004997501249375312
    """
    if not math.isclose(scaler.growth * scaler.backoff, 1):
        raise ValueError(
            f"growth={scaler.growth!r} and backoff={scaler.backoff!r} must cancel; try backoff={1 / scaler.growth:g}"
        )
    return 1 / (scaler.interval + 1)


def clipped_norm(*, norm: float, largest: float, scale: float, unscaled: bool) -> float:
    """Norm of the gradient that reaches the optimiser when the norm is clipped to `largest` after (unscaled) or
    before the loss scale is taken out.

    Formula:  unscaled min(norm, largest); otherwise min(scale * norm, largest) / scale
    Units:    norm is that of the true gradient
    Assumes:  nothing overflows
    Source:   PyTorch documentation, Automatic Mixed Precision examples, "Working with Unscaled Gradients" (gradient
              clipping)
    Measured: tests.measure.test_mixed_precision.test_torch_clips_what_the_formula_says

    >>> (
    ...     clipped_norm(norm=0.25, largest=1, scale=1024, unscaled=True),
    ...     clipped_norm(norm=0.25, largest=1, scale=1024, unscaled=False),
    ... )
    (0.25, 0.0009765625)
    """
    checks.positive(norm=norm, largest=largest, scale=scale)
    return min(norm, largest) if unscaled else min(scale * norm, largest) / scale


def recovery_steps(scaler: Scaler, *, bad_steps: int) -> int:
    """Good steps until the scale is back where it was before so many overflows in a row.

    Formula:  ceil(bad steps * log(1 / backoff) / log(growth)) * interval
    Assumes:  no further overflow; the scale counts as back when it is at least what it was
    Counted:  simulate.training_loop.loss_scaler.play

    >>> recovery_steps(Scaler(), bad_steps=3)
    6000
    """
    checks.count(bad_steps=bad_steps)
    growths = bad_steps * -math.log(scaler.backoff) / math.log(scaler.growth)
    return math.ceil(growths - 1e-9) * scaler.interval
