"""Narrow training: the same small regression trained with weights in bf16, and with weights in fp32 under autocast.

>>> [train(how, steps=20).moved for how in ("pure bf16", "autocast")]
[0, 512]
"""

from dataclasses import dataclass

import torch

from threeloops import checks

# Weights start between 1 and 2, where bf16 numbers are 1/128 apart.
WEIGHTS, SAMPLES, LEARNING_RATE = 512, 64, 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What some steps of Adam did to a model of 512 weights."""

    moved: int  # weights that are not what they were
    first_loss: float
    last_loss: float
    state_bytes_per_parameter: float  # weight, gradient and moments, as they lie in memory


def train(how: str, *, steps: int) -> Trained:
    """Fit a linear layer whose weights should all be a fifth larger. how: "pure bf16" (the model cast to bf16) or
    "autocast" (fp32 weights, bf16 products).
    """
    checks.one_of(("pure bf16", "autocast"), how=how)
    dtype = torch.bfloat16 if how == "pure bf16" else torch.float32
    random = torch.Generator().manual_seed(1)
    layer = torch.nn.Linear(WEIGHTS, 1, bias=False)
    start = 1 + torch.rand(1, WEIGHTS, generator=random).to(torch.bfloat16).float() * 127 / 128
    inputs = torch.rand(SAMPLES, WEIGHTS, generator=random)
    wanted = inputs @ (1.2 * start.T)
    layer.weight.data = start.to(dtype)
    begin = layer.weight.detach().clone()
    adam = torch.optim.Adam(layer.parameters(), lr=LEARNING_RATE)
    losses = [_step(layer, adam, inputs.to(dtype), wanted) for _ in range(steps)]
    assert layer.weight.grad is not None
    tensors = (
        layer.weight,
        layer.weight.grad,
        *(state for state in adam.state[layer.weight].values() if state.shape == layer.weight.shape),
    )
    return Trained(
        moved=int((layer.weight != begin).sum()),
        first_loss=losses[0],
        last_loss=losses[-1],
        state_bytes_per_parameter=sum(tensor.nbytes for tensor in tensors) / WEIGHTS,
    )


def _step(layer: torch.nn.Linear, adam: torch.optim.Adam, inputs: torch.Tensor, wanted: torch.Tensor) -> float:
    """One step; the error is taken in fp32 in both cases, so that only the weights' format differs."""
    adam.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=inputs.dtype == torch.float32):
        outputs = layer(inputs)
    loss = torch.nn.functional.mse_loss(outputs.float(), wanted)
    loss.backward()
    adam.step()
    return float(loss.detach())
