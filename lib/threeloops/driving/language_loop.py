"""Language loop: a language model inside a vehicle's period: when its first token comes, and how many fit.

>>> thor = LanguageLoop(
...     num_parameters=2e9,
...     bits=8,
...     prompt_tokens=1080,
...     memory_bytes_per_s=273e9,
...     peak_flops_per_s=517e12,
...     utilisation=0.24,
... )
>>> f"{thor.first_token_s * 1e3:.1f} ms, then {thor.step_s * 1e3:.2f} ms a token", thor.tokens_in(0.1)
('34.8 ms, then 7.33 ms a token', 9)
"""

from dataclasses import dataclass

from threeloops import checks
from threeloops.product_loop import serving
from threeloops.units import BITS_PER_BYTE


def picture_tokens(*, cameras: int, frames: int, height: int, width: int, edge: int) -> int:
    """Tokens that a model reads of its cameras' pictures at one decision.

    Formula:  cameras * frames * (height / edge) * (width / edge)
    Units:    frames: pictures of each camera; height, width: pixels as the model reads them; edge: pixels of the square
              that becomes one token, merging of patches included
    Assumes:  whole squares: pictures are resized to multiples of the edge; no token is dropped
    Source:   by definition
    Counted:  drills.joint_models.actions.PICTURES

    >>> picture_tokens(cameras=6, frames=4, height=320, width=576, edge=32)
    4320
    """
    checks.count(cameras=cameras, frames=frames, height=height, width=width, edge=edge)
    if height % edge or width % edge:
        raise ValueError(
            f"height={height} and width={width} must be multiples of edge={edge}: resize the picture first"
        )
    return cameras * frames * (height // edge) * (width // edge)


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageLoop:
    """A dense model, alone on its chip, one request at a time.

    Units:    utilisation: the share of the peak that reading a prompt reaches; bits: of a weight
    Assumes:  weights are all that a decode step reads (the cache of a short prompt is small beside them); encoding
              the pictures is not in it
    Source:   Pope et al., 2022, arXiv:2211.05102, section 2
    """

    num_parameters: float
    bits: float
    prompt_tokens: int
    memory_bytes_per_s: float
    peak_flops_per_s: float
    utilisation: float

    def __post_init__(self) -> None:
        checks.positive(num_parameters=self.num_parameters, bits=self.bits, memory_bytes_per_s=self.memory_bytes_per_s)

    @property
    def step_s(self) -> float:
        """Seconds of a token after the first.

        Formula:  num_parameters * bits / 8 / bandwidth
        """
        return self.num_parameters * self.bits / BITS_PER_BYTE / self.memory_bytes_per_s

    @property
    def first_token_s(self) -> float:
        """Seconds until the prompt is read, and the first token with it.

        Formula:  max(weights / bandwidth, prompt * 2 * num_parameters / (peak * utilisation))
        """
        computing_s = serving.prefill_s(
            tokens=self.prompt_tokens,
            flops_per_token=2 * self.num_parameters,
            peak_flops_per_s=self.peak_flops_per_s,
            utilisation=self.utilisation,
        )
        return max(self.step_s, computing_s)

    def tokens_in(self, deadline_s: float) -> int:
        """Tokens that are there in time; 0 where the prompt is not even read.

        Formula:  floor((deadline - first token) / step) + 1
        """
        return serving.most_output_tokens(deadline_s=deadline_s, ttft_s=self.first_token_s, itl_s=self.step_s)
