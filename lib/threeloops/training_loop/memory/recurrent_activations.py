"""Recurrent activations: what a layer of Mamba 2 or of gated delta rules keeps for its backward pass. See activations
for totals.

Their kernels keep what they read and one tensor of what they wrote; states, scores and the convolution's output of
Mamba 2 are made once more, chunk by chunk, when the backward pass comes.

Source: state-spaces/mamba, mamba_ssm/ops/triton/ssd_combined.py (MambaSplitConv1dScanCombinedFn); Megatron-LM,
        megatron/core/ssm/mamba_mixer.py (_ssm_training); fla-org/flash-linear-attention, fla/ops/gated_delta_rule/
        chunk.py (ChunkGatedDeltaRuleFunction)
"""

from threeloops import checks
from threeloops.models.architecture import Layer
from threeloops.models.recurrent_layers import DeltaState, StateSpace
from threeloops.training_loop.memory.activation_kernels import FP32_BYTES, RankView, SavedTensor
from threeloops.training_loop.memory.block_activations import stream_norm_items

PART = "attention"  # of a block, whose place the layer takes


def recurrent_items(layer: Layer, state: DeltaState | StateSpace, rank: RankView) -> tuple[SavedTensor, ...]:
    """What the sub-block keeps, its norm and its dropout mask included.

    Raises:   ValueError for kernels that fuse nothing: a scan in plain operations keeps tensors that are not counted;
              where tp does not divide heads, or what several heads share
    """
    if rank.kernels.attention != "flash":
        raise ValueError(
            f"kernels={rank.kernels.name!r} runs a scan in plain operations, whose tensors are not counted; try"
            " kernels='fused'"
        )
    inside = _delta_items(state, rank) if isinstance(state, DeltaState) else _space_items(state, rank)
    return (
        *stream_norm_items("mixer norm", layer.norm, PART, rank),
        *rank.read("mixer input", PART, rank.stream, linears=1),
        *inside,
        rank.kept("output projection input", PART, rank.split(state.output_dim, name="width of all heads")),
        *rank.mask("mixer output dropout mask", PART, rank.stream),
    )


def _space_items(state: StateSpace, rank: RankView) -> tuple[SavedTensor, ...]:
    """One function from the projection to the gated output; a norm over the heads of each group behind it."""
    checks.divides(part="tp", part_value=rank.tp, whole="groups", whole_value=state.groups)
    inner = rank.split(state.inner, name="width of all heads")
    per_group = (rank.micro_batch, rank.sequence, state.groups // rank.tp)
    normed = (
        rank.kept("scan's gated output", PART, inner),
        *rank.small("scan norm 1/rms", PART, per_group),
    )
    return (
        rank.kept("projected input", PART, rank.split(state.input_columns, name="columns of the projection in")),
        rank.kept("scan's output", PART, inner),
        *(normed if state.gated_norm else ()),
    )


def _delta_items(state: DeltaState, rank: RankView) -> tuple[SavedTensor, ...]:
    """The convolution's input, what the scan reads, its inverse of each chunk, and a gated norm for each head."""
    checks.divides(part="tp", part_value=rank.tp, whole="key_heads", whole_value=state.key_heads)
    rows, heads = (rank.micro_batch, rank.sequence), state.value_heads // rank.tp
    values = rank.split(state.value_dim, name="width of all values")
    keys = (*rows, heads, state.key_head_dim)  # repeated for every value head
    return (
        rank.kept("convolution input", PART, rank.split(state.conv_channels, name="channels of the convolution")),
        rank.kept("queries", PART, keys),
        rank.kept("keys", PART, keys),
        rank.kept("values", PART, values),
        *rank.small("query and key 1/norm", PART, (*rows, 2 * heads)),
        *rank.small("decays, summed up", PART, (*rows, heads)),
        *rank.small("write strengths", PART, (*rows, heads), bytes_per_element=rank.bytes_per_element),
        rank.kept("inverse of each chunk", PART, (*rows, heads, state.chunk)),
        rank.kept("scan's output", PART, values),
        rank.kept("gate", PART, values),
        *rank.small("scan norm 1/rms", PART, (*rows, heads), bytes_per_element=FP32_BYTES),
    )
