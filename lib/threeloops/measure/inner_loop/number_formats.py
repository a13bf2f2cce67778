"""Number formats as torch keeps them: casts, every bit pattern, sums in a narrow accumulator, and a real loss scaler.

>>> cast([0.1, 1 / 3, 70000.0], "fp16")
[0.0999755859375, 0.333251953125, inf]
"""

from collections.abc import Sequence

import torch

DTYPES = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "e5m2": torch.float8_e5m2,
    "e4m3": torch.float8_e4m3fn,
    "e8m0": torch.float8_e8m0fnu,
}


def cast(values: Sequence[float], name: str) -> list[float]:
    """The values after a round trip through a format.

    Assumes:  values exact in fp32, the format that torch's casts to 8 and 16 bits start from. What becomes of values
              beyond the largest is the version's choice
    """
    found: list[float] = torch.tensor(list(values), dtype=torch.float64).to(DTYPES[name]).to(torch.float64).tolist()
    return found


def every_number(name: str) -> list[float]:
    """What torch reads in every bit pattern of an 8- or 16-bit format, in the order of the patterns."""
    dtype = DTYPES[name]
    if dtype.itemsize > 2:
        raise ValueError(
            f"name={name!r} has {8 * dtype.itemsize} bits: too many patterns to list; try bf16, fp16, e5m2 or e4m3"
        )
    patterns = torch.arange(2 ** (8 * dtype.itemsize)).to(torch.uint8 if dtype.itemsize == 1 else torch.uint16)
    found: list[float] = patterns.view(dtype).to(torch.float64).tolist()
    return found


def running_sum(term: float, times: int, name: str, *, start: float = 0.0) -> float:
    """A term added to a one-number tensor again and again, in place, as an accumulator in that format does it."""
    total = torch.tensor(start, dtype=DTYPES[name])
    step = torch.tensor(term, dtype=DTYPES[name])
    for _ in range(times):
        total += step
    return float(total)


def loss_scales(largest_gradients: Sequence[float], *, interval: int = 2000) -> list[float]:
    """The scale that torch's GradScaler uses at each step, when fp16 gradients of that size come in."""
    weight = torch.nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.SGD([weight], lr=0.0)
    scaler = torch.amp.GradScaler("cpu", growth_interval=interval)
    scales = []
    for gradient in largest_gradients:
        scales.append(float(scaler.get_scale()))
        scaled = scaler.scale(torch.tensor(gradient)).to(torch.float16)
        weight.grad = scaled.to(torch.float32)
        scaler.step(optimizer)
        scaler.update()
    return scales
