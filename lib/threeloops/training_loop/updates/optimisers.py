"""Optimisers: bytes that one update moves, FLOPs that Muon spends, state that Adafactor and 8-bit Adam keep, and
what a compressed exchange saves.

An update is one pass over every parameter, or several: each operation that is a kernel of its own reads its operands
from memory and writes its result there. The chain below is AdamW as torch runs it "foreach": one kernel per
operation, over all tensors at once.

>>> (
...     update_bytes(num_parameters=1, kernels="separate", bytes_per_element=4),
...     update_bytes(num_parameters=1, kernels="one", bytes_per_element=4),
... )
(80.0, 28.0)
"""

import math
from collections.abc import Sequence

from threeloops import checks
from threeloops.inner_loop.fusion import Operation, fused_bytes, separate_bytes

# Each name is a tensor as large as the parameters; a dash marks what an operation in place has made of it.
ADAMW = (
    Operation("decayed", ("weight",)),
    Operation("momentum'", ("momentum", "gradient")),
    Operation("faded", ("variance",)),
    Operation("variance'", ("faded", "gradient")),
    Operation("root", ("variance'",)),
    Operation("corrected", ("root",)),
    Operation("shifted", ("corrected",)),
    Operation("weight'", ("decayed", "momentum'", "shifted")),
)
KEPT = ("weight'", "momentum'", "variance'")


def update_bytes(*, num_parameters: float, kernels: str, bytes_per_element: float) -> float:
    """Bytes that one AdamW update moves to and from memory.

    Formula:  "separate": 20 * num_parameters * bytes_per_element; "one": 7 * num_parameters * bytes_per_element (read
              weight, gradient and two moments, write all but the gradient)
    Units:    bytes_per_element of weights, gradients and moments alike; returns bytes
    Assumes:  the tensors together are much larger than any cache; no amsgrad, no clipping; the gradient is not
              cleared in here
    Source:   torch 2.13, torch/optim/adam.py, _multi_tensor_adam (the chain) and torch._fused_adamw_ (one kernel);
              Loshchilov and Hutter, 2019, arXiv:1711.05101 (AdamW)
    Measured: measure.training_loop.optimiser_traffic.traffic

    >>> update_bytes(num_parameters=1.5e9, kernels="one", bytes_per_element=4) / 1e9
    42.0
    """
    checks.one_of(("separate", "one"), kernels=kernels)
    checks.positive(num_parameters=num_parameters, bytes_per_element=bytes_per_element)
    sizes = {name: num_parameters * bytes_per_element for step in ADAMW for name in (*step.inputs, step.output)}
    return float(
        separate_bytes(ADAMW, sizes=sizes) if kernels == "separate" else fused_bytes(ADAMW, sizes=sizes, needed=KEPT)
    )


def narrow_update_bytes(*, num_parameters: float, moment_bytes: float) -> float:
    """Bytes that one update in one kernel moves when weights and gradients are fp32 and both moments are kept in
    fewer bytes.

    Formula:  num_parameters * (4 + 4 + 4 + 2 * moment_bytes): weight read and written, gradient read, all moments
              read and written
    Units:    moment_bytes of both moments of one parameter together, scales included; returns bytes
    Assumes:  each block is widened, updated and narrowed again in registers
    Source:   Dettmers et al., 2021, arXiv:2110.02861, section 2
    Counted:  tests.training_loop.test_optimisation_stack.test_an_update_in_one_kernel_reads_and_writes_value_by_value

    >>> narrow_update_bytes(num_parameters=1, moment_bytes=8) == update_bytes(
    ...     num_parameters=1, kernels="one", bytes_per_element=4
    ... )
    True
    """
    checks.positive(num_parameters=num_parameters, moment_bytes=moment_bytes)
    return num_parameters * (3 * 4 + 2 * moment_bytes)


def newton_schulz_flops(*, rows: int, columns: int, iterations: int) -> int:
    """FLOPs that Muon spends to make one weight matrix's update orthogonal.

    Formula:  iterations * (4 * short**2 * long + 2 * short**3): X Xᵀ, its square, and that times X
    Shapes:   X is [short, long], the momentum laid so that its first side is the shorter
    Assumes:  dense products, a multiply-add counted as 2; the symmetry of X Xᵀ is not used
    Source:   Jordan et al., Muon, 2024, kellerjordan.github.io/posts/muon (section "Runtime analysis"); torch 2.13,
              torch.optim.Muon
    Measured: tests.measure.test_measure_stack.test_muon_spends_the_flops_of_the_formula

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
    Assumes:  one device does both, or both are shared out over the same devices (replicas that all do it alone
              multiply the share by their number)
    Source:   Jordan et al., 2024, as above
    Counted:  drills.step_time.stack_updates.MUON

    >>> round(newton_schulz_share(rows=4096, columns=4096, iterations=5, tokens=500_000), 4)
    0.041
    """
    checks.positive(tokens=tokens)
    return newton_schulz_flops(rows=rows, columns=columns, iterations=iterations) / (6 * rows * columns * tokens)


def adafactor_state_bytes(*, shapes: Sequence[Sequence[int]], bytes_per_element: float, first_moment: bool) -> float:
    """Bytes of state that Adafactor keeps for parameters of these shapes: of a matrix's second moment only a mean per
    row and one per column.

    Formula:  per tensor bytes_per_element * (values / last side + values / last side but one), of a vector or a
              scalar bytes_per_element * values; with a first moment, bytes_per_element * values more
    Shapes:   one per parameter tensor, as torch lays it out: an embedding table is [vocab, hidden]; of more than two
              sides the last two are factored
    Units:    bytes_per_element of the state (torch.optim: that of the parameter; transformers: 4 whatever the
              parameter's); returns bytes
    Assumes:  every tensor of two sides or more is factored, as in torch and transformers (optax leaves sides under
              128 whole); step counters neglected
    Raises:   ValueError for a side below 1
    Source:   Shazeer and Stern, 2018, arXiv:1804.04235, sections 3 (factors) and 4 (no momentum); torch 2.13,
              torch/optim/_adafactor.py
    Measured: measure.training_loop.optimiser_state.state_bytes

    >>> adafactor_state_bytes(shapes=[(4096, 14336), (4096,)], bytes_per_element=4, first_moment=False)
    90112
    """
    checks.positive(bytes_per_element=bytes_per_element)
    values = 0
    for shape in shapes:
        for side in shape:
            checks.count(side=side)
        whole = math.prod(shape)
        values += whole // shape[-1] + whole // shape[-2] if len(shape) > 1 else whole
        values += whole if first_moment else 0
    return bytes_per_element * values


def adam_8bit_state_bytes(*, num_parameters: float, wide_parameters: float, block: int) -> float:
    """Bytes of Adam's two moments when they take 8 bits with one fp32 scale per block of values, and some parameters
    keep both in fp32.

    Formula:  2 * (4 * wide_parameters + (1 + 4 / block) * (num_parameters - wide_parameters))
    Units:    num_parameters of the whole model, of which wide_parameters keep fp32 moments; block in values
    Assumes:  blocks are full
    Raises:   ValueError if more parameters are wide than there are
    Source:   Dettmers et al., 2021, arXiv:2110.02861, section 2
    Counted:  tests.training_loop.test_optimisation_stack.test_8_bit_moments_against_a_walk_over_their_values

    >>> adam_8bit_state_bytes(num_parameters=1000, wide_parameters=200, block=64)
    3300.0
    """
    checks.positive(num_parameters=num_parameters)
    checks.non_negative(wide_parameters=wide_parameters)
    checks.count(block=block)
    if wide_parameters > num_parameters:
        raise ValueError(f"wide_parameters={wide_parameters!r} must be at most num_parameters={num_parameters!r}")
    return 2 * (4 * wide_parameters + (1 + 4 / block) * (num_parameters - wide_parameters))


def compressed_volume(*, warm_up_share: float, bits_before: float, bits_after: float) -> float:
    """Bits sent over a whole run, as a share of the uncompressed run's, when exchanges are narrow after a warm-up.

    Formula:  warm_up_share + (1 - warm_up_share) * bits_after / bits_before
    Assumes:  scales and padding are small; every step exchanges, before and after
    Source:   Tang et al., 1-bit Adam, 2021, arXiv:2102.02888, section 7 (fp16 before, 1 bit after)
    Counted:  tests.training_loop.test_optimisation_stack.test_a_run_sends_wide_and_then_narrow_step_by_step

    >>> round(
    ...     1 / compressed_volume(warm_up_share=0.15, bits_before=16, bits_after=1), 1
    ... )  # the paper says "up to 5 times"
    4.9
    """
    checks.fraction(warm_up_share=warm_up_share)
    checks.positive(bits_before=bits_before, bits_after=bits_after)
    return warm_up_share + (1 - warm_up_share) * bits_after / bits_before
