"""A latent-attention block's work, against the operations of the model that it was taken from."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from threeloops.facts.kernel_times import kernel_table
from threeloops.models import catalogue
from threeloops.models.forward_step import MATRIX, ForwardStep
from threeloops.models.parameters import model_parameters
from threeloops.models.sublayers import latent_attention_ops
from threeloops.operations.expected_times import expected_latent
from threeloops.operations.latent_module import latent_decode, latent_prefill, latent_weights
from threeloops.operations.roofline import Work

DEEPSEEK = catalogue.model("deepseek-v3")


def test_weights_are_those_of_the_model() -> None:
    """Norms of the two compressed vectors are a hundred-thousandth."""
    assert 61 * latent_weights(128) == pytest.approx(model_parameters(DEEPSEEK).attention, rel=1e-4)


@pytest.mark.parametrize("heads", [16, 128])
@pytest.mark.parametrize(("phase", "batch", "tokens"), [("decode", 64, 4096), ("prefill", 1, 2048), ("decode", 1, 16)])
def test_flops_and_bytes_are_those_of_its_operations(heads: int, phase: str, batch: int, tokens: int) -> None:
    """Matrix products one by one, each with its operands; what a block need not move between them is left out here."""
    attention = replace(DEEPSEEK.groups[0][0].attending, num_heads=heads)
    step = ForwardStep(
        phase=phase,
        batch=batch,
        sequence=tokens,
        causal="full" if phase == "decode" else "half",
        fused_attention=True,
        logits="last",
        bytes_per_element=2,
        latent="absorbed" if phase == "decode" else "expanded",
    )
    ops = latent_attention_ops(attention, hidden=DEEPSEEK.hidden, step=step)
    count = latent_decode if phase == "decode" else latent_prefill
    work = count(batch=batch, num_heads=heads, tokens=tokens, bytes_per_element=2, cache_bytes_per_element=2)
    products = [op.work for op in ops if op.unit == MATRIX]
    assert work.flops == pytest.approx(sum(one.flops for one in products), rel=1e-3)
    assert work.moved_bytes < sum(one.moved_bytes for one in products)


@pytest.mark.parametrize("count", [latent_decode, latent_prefill])
def test_a_block_moves_its_matrices_its_latents_and_what_goes_in_and_out(count: Callable[..., Work]) -> None:
    """Sizes from the model's own configuration: each kind of bytes is what is left when its width alone is changed."""
    batch, tokens = 3, 2048
    rows = batch * (tokens if count is latent_prefill else 1)
    latent = DEEPSEEK.groups[0][0].attending

    def moved(weights: float, cache: float) -> float:
        sizes = {"batch": batch, "num_heads": 128, "tokens": tokens}
        return count(**sizes, bytes_per_element=weights, cache_bytes_per_element=cache).moved_bytes

    assert moved(2, 4) - moved(2, 2) == 2 * batch * tokens * (latent.kv_rank + latent.rope_head_dim)
    matrices = moved(3, 2) - moved(2, 2)
    assert matrices == pytest.approx(model_parameters(DEEPSEEK).attention / 61, rel=1e-4)
    left = moved(2, 2) - 2 * matrices - 2 * (moved(2, 3) - moved(2, 2))
    assert left == 2 * 2 * rows * DEEPSEEK.hidden


def test_a_block_is_expected_above_its_bound_and_grows_with_all_its_sizes() -> None:
    sizes = {"batch": 64, "num_heads": 16, "tokens": 4096}
    for phase in ("prefill", "decode"):
        one = expected_latent("h200-sxm", phase=phase, **sizes, format="fp8")
        assert one.bound_s < one.seconds
        for name in sizes:
            assert expected_latent("h200-sxm", phase=phase, **sizes | {name: 2 * sizes[name]}, format="fp8").seconds > (
                one.seconds
            )


def test_blocks_that_no_table_has_seen() -> None:
    """Rows that were kept back, of which hardly one in ten is a fifth off."""
    for phase in ("prefill", "decode"):
        table = kernel_table("h200-sxm", f"latent_{phase}", "bf16")
        off = []
        for (batch, heads, tokens), took_s in table.kept_back:
            sizes = {"batch": batch, "num_heads": heads, "tokens": tokens}
            off.append(abs(expected_latent("h200-sxm", phase=phase, **sizes, format="bf16").seconds / took_s - 1))
        assert sorted(off)[len(off) * 9 // 10] < 0.2


def test_what_a_b200_took_is_carried_to_its_siblings() -> None:
    sizes = {"batch": 64, "num_heads": 16, "tokens": 4096}
    took = {part: expected_latent(part, phase="decode", **sizes, format="fp8") for part in ("b200-hgx", "gb300")}
    assert took["gb300"].seconds == took["b200-hgx"].seconds
    assert took["gb300"].table.part == "b200-hgx"


@pytest.mark.parametrize(
    ("part", "phase", "format", "says"),
    [
        ("h200-sxm", "both", "fp8", "phase='both'"),
        ("h200-sxm", "decode", "nvfp4", "format='nvfp4'"),
        ("l40s", "decode", "bf16", "format='bf16'"),
        ("rtx-4090", "decode", "bf16", "part='rtx-4090'"),
    ],
)
def test_blocks_that_nobody_timed_are_refused(part: str, phase: str, format: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        expected_latent(part, phase=phase, batch=1, num_heads=16, tokens=64, format=format)
