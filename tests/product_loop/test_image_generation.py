"""Pictures from a diffusion transformer, against what its authors print."""

import pytest

from threeloops.product_loop.operating import image_generation


@pytest.mark.parametrize(("pixels", "printed"), [(256, 119e9), (512, 525e9)])
def test_a_run_has_the_multiply_adds_that_are_printed(pixels: int, printed: float) -> None:
    # facebookresearch/DiT at commit ed81ce22, README: "Gflops" of DiT-XL/2, which are multiply-adds.
    tokens = image_generation.latent_tokens(height=pixels, width=pixels, downsampled=8, patch=2)
    assert tokens == (pixels // 16) ** 2
    assert image_generation.denoiser_flops(tokens=tokens, num_layers=28, hidden=1152) / 2 == pytest.approx(
        printed, rel=0.006
    )


def test_guidance_doubles_a_picture() -> None:
    once, guided = (
        image_generation.generated_image_s(
            run_flops=1e13, steps=28, runs_per_step=runs, peak_flops_per_s=1e15, utilisation=0.5
        )
        for runs in (1, 2)
    )
    assert (once, guided) == pytest.approx((0.56, 1.12))


def test_what_is_no_picture_is_refused() -> None:
    with pytest.raises(ValueError, match="height=250 and width=256 must be multiples of 16, the side of one token"):
        image_generation.latent_tokens(height=250, width=256, downsampled=8, patch=2)
    with pytest.raises(ValueError, match=r"utilisation=1\.5"):
        image_generation.generated_image_s(run_flops=1, steps=1, runs_per_step=1, peak_flops_per_s=1, utilisation=1.5)
