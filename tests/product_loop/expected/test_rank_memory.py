"""What a GPU of a tensor group holds, counted again from the model's own parameters."""

from dataclasses import replace
from typing import Any

import pytest

from threeloops.facts import hardware
from threeloops.models import catalogue
from threeloops.models.parameters import model_parameters
from threeloops.product_loop.expected.rank_memory import rank_weight_bytes, seats

LLAMA_8B = catalogue.model("llama-3-8b")


def test_of_latent_attention_what_compresses_is_on_every_gpu() -> None:
    """DeepSeek-V3 on eight: 7 times 7168 x (1536 + 576) a layer beside the model's own parameters."""
    deepseek = catalogue.model("deepseek-v3")
    held = 8 * rank_weight_bytes(deepseek, 8, "bf16") / 2
    copies = 7 * 61 * 7168 * (1536 + 576)
    own = model_parameters(deepseek).total
    assert held == pytest.approx(own + copies, rel=2e-3)
    assert copies / own > 0.009


@pytest.mark.parametrize("name", ["llama-3-8b", "qwen3-235b-a22b"])
def test_all_gpus_together_hold_the_model(name: str) -> None:
    """All parameters but norms, routers and biases, a thousandth of them."""
    model = catalogue.model(name)
    held = 4 * rank_weight_bytes(model, 4, "bf16") / 2
    assert held == pytest.approx(model_parameters(model).total, rel=2e-3)


@pytest.mark.parametrize(("name", "dp"), [("qwen3-235b-a22b", 4), ("deepseek-v3", 8)])
def test_groups_hold_all_but_the_experts_each(name: str, dp: int) -> None:
    """Counted from the model's own parameters: routed experts once, all else as often as there are groups."""
    model = catalogue.model(name)
    counted = model_parameters(model)
    held = dp * rank_weight_bytes(model, 1, "bf16", dp=dp) / 2
    routed = sum(layer.routed_experts * count for layer, count in counted.layers)
    assert held == pytest.approx(routed + dp * (counted.total - routed), rel=4e-3)


def test_groups_of_their_own_seat_more_where_latents_are_copied() -> None:
    """DeepSeek-V3 on eight H200s: one group copies every latent eight times, eight groups keep each once."""
    formats: dict[str, Any] = {"part": "h200-sxm", "format": "fp8", "cache": "bf16", "tokens": 8192}
    model = catalogue.model("deepseek-v3")
    assert seats(model, **formats, tp=1, dp=8) > 5 * seats(model, **formats, tp=8)


def test_seats_are_what_the_weights_leave() -> None:
    """Matrix by matrix, the table that is looked up too, then a request after the other."""
    formats: dict[str, Any] = {"part": "h100-sxm5", "format": "bf16", "cache": "bf16"}
    held = seats(LLAMA_8B, **formats, tp=1, tokens=1000)
    free = 0.9 * hardware.part("h100-sxm5").capacity_bytes()
    for matrix in [*[(4096, 4096 + 2 * 1024 + 4096), (4096, 3 * 14336)] * 32, (4096, 128_256), (4096, 128_256)]:
        free -= 2 * matrix[0] * matrix[1]
    counted = 0
    while free >= (taken := sum(2 * 8 * 128 * 2 for _layer in range(32)) * 1000):
        free, counted = free - taken, counted + 1
    assert held == counted
    assert seats(LLAMA_8B, **formats, tp=2, tokens=1000) > 2 * held
    with pytest.raises(ValueError, match="leaves no room"):
        seats(catalogue.model("llama-3-70b"), **formats, tp=1, tokens=1000)


def test_windows_leave_more_seats() -> None:
    """Half of gpt-oss's layers keep 128 tokens, next to nothing."""
    model = catalogue.model("gpt-oss-120b")
    formats: dict[str, Any] = {"part": "h100-sxm5", "format": "mxfp4", "cache": "bf16", "tp": 1}
    everywhere = tuple(
        (replace(layer, attention=replace(layer.attending, window=None)), count) for layer, count in model.groups
    )
    held = [seats(one, **formats, tokens=16_000) for one in (model, replace(model, groups=everywhere))]
    assert held[0] == pytest.approx(2 * held[1], rel=0.05)  # half the layers keep next to nothing
