"""Software: what a run's programs do, as far as it decides how long its step takes.

>>> usual_software("h100-sxm5").attention
'cudnn'
"""

from dataclasses import dataclass

from threeloops import checks
from threeloops.operations.attention_kernels import PARTS_OF, usual_kernel
from threeloops.training_loop.parallelism.product_rates import ROLES

UNFUSED = "unfused"
# Bytes moved for each logit by the loss and its backward pass, 16-bit logits. Plain (torch): a cast to fp32 (2 + 4),
# log-softmax (4 + 4), its backward pass (two reads, a write: 12), the gradient that the pick of one class spreads out
# (4), the cast back (4 + 2). Fused: one read for the sums, a read and a write of gradients in their place, and a read
# and a write to scale them.
LOSS_BYTES = {"plain": 36, "fused": 10}
# What a backward pass may run again, by Megatron's names: roles of products and names of operations (a name's end).
MODULES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "layernorm": ((), ("attention_norm", "mlp_norm")),
    "core_attn": ((), ()),  # the kernel of attention, which is neither
    "mla_up_proj": (("latent up",), ("rotary",)),
    "mlp": (("mlp",), ("gated_activation", "activation")),
    "moe_act": ((), ("expert_activation",)),
    "moe": (
        ("experts", "shared", "expert latent"),
        ("router_softmax", "expert_gather", "expert_activation", "expert_combine", "shared_activation", "shared_add"),
    ),
}
WIDE = "bf16"  # of layers that are kept out of a narrow format, and of the head


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    """The kernels and habits of a training program."""

    attention: str  # a kernel of operations.attention_kernels, or "unfused"
    loss: str  # of LOSS_BYTES
    # Of each weight's gradient, after every micro-batch, beyond the 16-bit number that the product writes: 6 where it
    # is added up in fp32 (read 4, write 4, instead of 2); 8 where torch's FSDP of flat parameters puts a unit's
    # gradients into one buffer (2 + 2) and divides them before they leave (2 + 2)
    gradient_bytes_moved: float
    overlaps_tensor: bool  # tensor-parallel exchanges run piece by piece beside the product that needs them
    # expert exchanges of one micro-batch run beside the passes of another
    overlaps_experts: bool = False
    recomputes: tuple[str, ...] = ()  # of MODULES
    formats: tuple[tuple[str, str], ...] = ()  # of products whose format is not the run's: (role of Product, format)
    wide_layers: int = 0  # of the first or last, whose products are all in 16 bits
    # bytes of a routing weight where operations of their own add experts' biases; 0 where kernels do
    bias_weight_bytes: int = 0
    more_heads: int = 0  # heads with a loss beyond the first: of tokens after the next one

    def __post_init__(self) -> None:
        checks.one_of((*PARTS_OF, UNFUSED), attention=self.attention)
        checks.one_of(LOSS_BYTES, loss=self.loss)
        checks.non_negative(gradient_bytes_moved=self.gradient_bytes_moved, wide_layers=self.wide_layers)
        checks.non_negative(more_heads=self.more_heads)
        if self.bias_weight_bytes not in (0, 2, 4):
            raise ValueError(
                f"bias_weight_bytes={self.bias_weight_bytes} must be 2 or 4, as a routing weight has, or 0"
                " where kernels add the biases"
            )
        for module in self.recomputes:
            checks.one_of(MODULES, recomputes=module)
        for role, _ in self.formats:
            checks.one_of(ROLES, formats=role)

    def format_of(self, role: str, *, otherwise: str) -> str:
        """The format of products of a role, outside of wide layers."""
        return dict(self.formats).get(role, otherwise)

    def repeats_product(self, role: str) -> bool:
        """Whether a backward pass multiplies forward again in products of a role."""
        return any(role in MODULES[module][0] for module in self.recomputes)

    def repeats_operation(self, name: str) -> bool:
        """Whether a backward pass runs an operation of the forward pass again."""
        return any(name in MODULES[module][1] for module in self.recomputes)


def usual_software(part: str) -> Software:
    """A well-tuned program on a part: its fastest known attention kernel, a fused loss, gradients added up in fp32,
    exchanges of tensor groups piece by piece.

    Raises:   ValueError for a part on which no attention kernel was measured
    """
    return Software(attention=usual_kernel(part), loss="fused", gradient_bytes_moved=6, overlaps_tensor=True)
