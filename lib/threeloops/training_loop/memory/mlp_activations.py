"""MLP activations: the wide tensors of a feed-forward block, and what routing tokens to experts adds to them. See
activations for totals.
"""

from threeloops import checks
from threeloops.models.architecture import DenseMlp, MoeMlp
from threeloops.training_loop.memory.activation_kernels import FP32_BYTES, INDEX_BYTES, Kernels, RankView, SavedTensor


def wide_items(mlp: DenseMlp, rank: RankView) -> tuple[SavedTensor, ...]:
    """What lies between the projections into and out of a dense block."""
    wide = rank.split(mlp.intermediate, name="intermediate")
    return tuple(rank.kept(name, "mlp", wide) for name in _wide_names(mlp, rank.kernels))


def input_linears(mlp: DenseMlp | MoeMlp) -> int:
    """Linear layers that read the input of a feed-forward block itself; routed experts read copies."""
    if isinstance(mlp, DenseMlp):
        return mlp.num_matrices - 1
    shared = input_linears(mlp.shared) if mlp.shared else 0
    return 1 + shared + mlp.shared_gate + (mlp.latent is not None)


def _wide_names(mlp: DenseMlp, kernels: Kernels) -> tuple[str, ...]:
    before = _before_activation(mlp.activation, kernels)
    if not mlp.gated:
        return (*before, "down projection input")
    if kernels.gate == "fused":
        return ("gate", "up", "down projection input")
    return (*before, f"{mlp.activation} output", "up", "down projection input")


def _before_activation(activation: str, kernels: Kernels) -> tuple[str, ...]:
    if activation == "relu":
        return ()  # its backward needs only the sign of its output, and keeps that
    if activation == "gelu_new" and kernels.gelu_new == "eager":
        # 0.5 * x * (1 + tanh(...)): the power keeps x, the tanh its output, the last product both of its factors.
        return ("gelu_new input", "gelu_new half of its input", "gelu_new tanh", "gelu_new 1 + tanh")
    return (f"{activation} input",)


def mixture_items(mlp: MoeMlp, rank: RankView) -> tuple[SavedTensor, ...]:
    """What a mixture of experts keeps: the router's probabilities, the dispatched tokens, the experts' wide tensors
    and outputs, shared experts.

    Assumes:  softmax over all experts in fp32; dispatched tokens are a copy in the order of their experts, spread
              equally over ranks; the outputs are kept because the router's weights multiply them, and those weights
              have a gradient; the sum of narrower experts is what the projection back to the token's width reads
    """
    expert_tp = _expert_tp(rank)
    rows = mlp.top_k * rank.micro_batch * rank.sequence * expert_tp // rank.tp
    checks.divides(part="expert_tp", part_value=expert_tp, whole="intermediate", whole_value=mlp.expert.intermediate)
    tokens = rank.stream[:2]
    wide, width = (rows, mlp.expert.intermediate // expert_tp), mlp.latent or rank.hidden
    return (
        SavedTensor(
            name="router probabilities", part="mlp", shape=(*tokens, mlp.num_experts), bytes_per_element=FP32_BYTES
        ),
        *rank.small("chosen experts", "mlp", (*tokens, mlp.top_k), bytes_per_element=INDEX_BYTES),
        *rank.small("order of dispatch", "mlp", (rows,), bytes_per_element=INDEX_BYTES),
        *rank.small("tokens dispatched", "mlp", (rows,), bytes_per_element=INDEX_BYTES),
        *rank.read("expert inputs", "mlp", (rows, width), linears=input_linears(mlp.expert)),
        *(rank.kept(f"expert {name}", "mlp", wide) for name in _wide_names(mlp.expert, rank.kernels)),
        rank.kept("expert outputs", "mlp", (rows, width)),
        *rank.small(
            "expert weights",
            "mlp",
            (rows, 1),
            bytes_per_element=FP32_BYTES if rank.autocast else rank.bytes_per_element,
        ),
        *((rank.kept("sum of experts", "mlp", (*tokens, width)),) if mlp.latent else ()),
        *(_shared_items(mlp.shared, mlp.shared_gate, rank) if mlp.shared else ()),
    )


def _shared_items(shared: DenseMlp, gated: bool, rank: RankView) -> tuple[SavedTensor, ...]:
    wide = tuple(rank.kept(f"shared expert {item.name}", "mlp", item.shape) for item in wide_items(shared, rank))
    if not gated:
        return wide
    gate = rank.small("shared expert gate", "mlp", (*rank.stream[:2], 1), bytes_per_element=rank.bytes_per_element)
    return (*wide, rank.kept("shared expert output", "mlp", rank.stream), *gate)


def _expert_tp(rank: RankView) -> int:
    """How many ranks share one expert. Where experts are split less than the rest, each tensor rank must have tokens
    of its own to dispatch.
    """
    if rank.tp == 1:
        return 1
    if rank.expert_tp is None:
        raise ValueError(
            f"expert_tp must be stated with experts and tp={rank.tp}: 1 keeps each expert whole, tp={rank.tp} splits it"
            " as the rest is split"
        )
    checks.divides(part="expert_tp", part_value=rank.expert_tp, whole="tp", whole_value=rank.tp)
    if rank.expert_tp < rank.tp and not rank.sequence_parallel:
        raise ValueError(
            f"expert_tp={rank.expert_tp} below tp={rank.tp} needs sequence_parallel=True, or all tensor ranks would"
            " dispatch the same tokens"
        )
    return rank.expert_tp
