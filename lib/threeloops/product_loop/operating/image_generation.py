"""Pictures made by a diffusion transformer: tokens of the latent, FLOPs of a run over them, and how often it runs.

>>> tokens = latent_tokens(height=1024, width=1024, downsampled=8, patch=2)
>>> tokens, round(denoiser_flops(tokens=tokens, num_layers=28, hidden=1152) / 1e12, 2)
(4096, 5.82)
"""

from threeloops import checks


def latent_tokens(*, height: int, width: int, downsampled: int, patch: int) -> int:
    """Tokens that a diffusion transformer sees of a picture.

    Formula:  height / (downsampled * patch) * width / (downsampled * patch)
    Units:    pixels; the encoder makes each side `downsampled` times shorter, and patch × patch latent pixels become a
              token
    Raises:   ValueError for sides that do not come out in whole tokens
    Source:   Peebles and Xie, 2022, arXiv:2212.09748, section 3.2 (latents of 32 × 32 for 256 × 256 pixels, patches)
    Counted:  drills.capacity.generated_images.SECONDS
    """
    checks.count(height=height, width=width, downsampled=downsampled, patch=patch)
    side = downsampled * patch
    if height % side or width % side:
        raise ValueError(f"height={height} and width={width} must be multiples of {side}, the side of one token")
    return (height // side) * (width // side)


def denoiser_flops(*, tokens: int, num_layers: int, hidden: int) -> float:
    """FLOPs of one run of a diffusion transformer over a picture.

    Formula:  num_layers * (24 * hidden**2 * tokens + 4 * hidden * tokens**2)
    Units:    a multiply-add is two FLOPs; papers on diffusion often print multiply-adds and call them FLOPs
    Assumes:  layers of attention and an MLP of four times the width, 12 * hidden**2 weights each; every token attends
              to every token; conditioning, embedding and the last layer left out
    Source:   Peebles and Xie, 2022, arXiv:2212.09748 (its repository prints 119 and 525 "Gflops" for DiT-XL/2 at 256
              and 512 pixels)
    Counted:  drills.capacity.generated_images.SECONDS

    >>> round(denoiser_flops(tokens=256, num_layers=28, hidden=1152) / 2 / 1e9, 1)
    118.4
    """
    checks.count(tokens=tokens, num_layers=num_layers, hidden=hidden)
    return float(num_layers * (24 * hidden**2 * tokens + 4 * hidden * tokens**2))


def generated_image_s(
    *, run_flops: float, steps: int, runs_per_step: int, peak_flops_per_s: float, utilisation: float
) -> float:
    """GPU-seconds of a picture.

    Formula:  steps * runs_per_step * run_flops / (utilisation * peak_flops_per_s)
    Units:    runs_per_step: 2 with classifier-free guidance, which runs with the prompt and without; 1 where that was
              distilled into the model
    Assumes:  text encoder and decoder to pixels left out
    Source:   Ho and Salimans, 2022, arXiv:2207.12598 (guidance from two estimates a step)
    Counted:  drills.capacity.generated_images.SECONDS

    >>> round(
    ...     generated_image_s(run_flops=5.8e12, steps=50, runs_per_step=2, peak_flops_per_s=989e12, utilisation=0.4), 2
    ... )
    1.47
    """
    checks.count(steps=steps, runs_per_step=runs_per_step)
    checks.positive(run_flops=run_flops, peak_flops_per_s=peak_flops_per_s, utilisation=utilisation)
    checks.fraction(utilisation=utilisation)
    return steps * runs_per_step * run_flops / (utilisation * peak_flops_per_s)
