"""Optimisers: bytes that one update moves, FLOPs that Muon spends, and what a compressed exchange saves.

An update is one pass over every parameter, or several: each operation that is a kernel of its own reads its operands from memory and writes its
result there. The chain below is AdamW as torch runs it "foreach": one kernel per operation, over all tensors at once.

>>> update_bytes(parameters=1, kernels="separate", element_bytes=4), update_bytes(parameters=1, kernels="one", element_bytes=4)
(80.0, 28.0)
"""

from threeloops import checks
from threeloops.fusion import Step, fused_bytes, separate_bytes

# Each name is a tensor as large as the parameters; a dash marks what an operation in place has made of it.
ADAMW = (
    Step("decayed", ("weight",)),
    Step("momentum'", ("momentum", "gradient")),
    Step("faded", ("variance",)),
    Step("variance'", ("faded", "gradient")),
    Step("root", ("variance'",)),
    Step("corrected", ("root",)),
    Step("shifted", ("corrected",)),
    Step("weight'", ("decayed", "momentum'", "shifted")),
)
KEPT = ("weight'", "momentum'", "variance'")


def update_bytes(*, parameters: float, kernels: str, element_bytes: float) -> float:
    """Bytes that one AdamW update moves to and from memory.

    Formula:  "separate": 20 * parameters * element_bytes; "one": 7 * parameters * element_bytes (read weight, gradient and two moments, write all but
              the gradient)
    Units:    element_bytes of weights, gradients and moments alike; returns bytes
    Assumes:  the tensors together are much larger than any cache; no amsgrad, no clipping; the gradient is not cleared in here
    Source:   torch 2.13, torch/optim/adam.py, _multi_tensor_adam (the chain) and torch._fused_adamw_ (one kernel);
              Loshchilov and Hutter, 2019, arXiv:1711.05101 (AdamW)

    >>> update_bytes(parameters=1.5e9, kernels="one", element_bytes=4) / 1e9
    42.0
    """
    checks.one_of(("separate", "one"), kernels=kernels)
    checks.positive(parameters=parameters, element_bytes=element_bytes)
    sizes = {name: parameters * element_bytes for step in ADAMW for name in (*step.inputs, step.output)}
    return float(separate_bytes(ADAMW, sizes=sizes) if kernels == "separate" else fused_bytes(ADAMW, sizes=sizes, needed=KEPT))


def narrow_update_bytes(*, parameters: float, moment_bytes: float) -> float:
    """Bytes that one update in one kernel moves when weights and gradients are fp32 and both moments are kept in fewer bytes.

    Formula:  parameters * (4 + 4 + 4 + 2 * moment_bytes): weight read and written, gradient read, all moments read and written
    Units:    moment_bytes of both moments of one parameter together, scales included; returns bytes
    Assumes:  each block is widened, updated and narrowed again in registers
    Source:   Dettmers et al., 2021, arXiv:2110.02861, section 2

    >>> narrow_update_bytes(parameters=1, moment_bytes=8) == update_bytes(parameters=1, kernels="one", element_bytes=4)
    True
    """
    checks.positive(parameters=parameters, moment_bytes=moment_bytes)
    return parameters * (3 * 4 + 2 * moment_bytes)


def newton_schulz_flops(*, rows: int, columns: int, iterations: int) -> int:
    """FLOPs that Muon spends to make one weight matrix's update orthogonal.

    Formula:  iterations * (4 * short**2 * long + 2 * short**3): X Xᵀ, its square, and that times X
    Shapes:   X is [short, long], the momentum laid so that its first side is the shorter
    Assumes:  dense products, a multiply-add counted as 2; the symmetry of X Xᵀ is not used
    Source:   Jordan et al., Muon, 2024, kellerjordan.github.io/posts/muon (section "Runtime analysis"); torch 2.13, torch.optim.Muon

    >>> newton_schulz_flops(rows=64, columns=256, iterations=5)
    23592960
    """
    checks.count(rows=rows, columns=columns, iterations=iterations)
    short, long = sorted((rows, columns))
    return iterations * (4 * short**2 * long + 2 * short**3)


def newton_schulz_share(*, rows: int, columns: int, iterations: int, tokens: float) -> float:
    """What those FLOPs are next to the FLOPs that the same matrix spends on the tokens of one update.

    Formula:  newton_schulz_flops / (6 * rows * columns * tokens)
    Units:    tokens of the whole batch behind one update, over all replicas
    Assumes:  one device does both, or both are shared out over the same devices (replicas that all do it alone multiply the share by their number)
    Source:   Jordan et al., 2024, as above

    >>> round(newton_schulz_share(rows=4096, columns=4096, iterations=5, tokens=500_000), 4)
    0.041
    """
    checks.positive(tokens=tokens)
    return newton_schulz_flops(rows=rows, columns=columns, iterations=iterations) / (6 * rows * columns * tokens)


def compressed_volume(*, warm_up_share: float, bits_before: float, bits_after: float) -> float:
    """Bits sent over a whole run, as a share of the uncompressed run's, when exchanges are narrow after a warm-up.

    Formula:  warm_up_share + (1 - warm_up_share) * bits_after / bits_before
    Assumes:  scales and padding are small; every step exchanges, before and after
    Source:   Tang et al., 1-bit Adam, 2021, arXiv:2102.02888, section 7 (fp16 before, 1 bit after)

    >>> round(1 / compressed_volume(warm_up_share=0.15, bits_before=16, bits_after=1), 1)  # the paper says "up to 5 times"
    4.9
    """
    checks.fraction(warm_up_share=warm_up_share)
    checks.positive(bits_before=bits_before, bits_after=bits_after)
    return warm_up_share + (1 - warm_up_share) * bits_after / bits_before
