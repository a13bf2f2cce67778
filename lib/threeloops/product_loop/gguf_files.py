"""GGUF files: how many weights of a model a file keeps in which block format, by the name that it is downloaded under.

A name like Q4_K_M is a recipe: most matrices in Q4_K, those that lose most (half of the value projections and of the
matrices back down, and the head) in Q6_K, norms and biases in F32. What a weight takes on average follows from the
model's shape, and is no property of the name.

>>> from threeloops.models.catalogue import model
>>> weights = file_weights(model("llama-3-8b"), file_type="Q4_K_M")
>>> weights, round(mixture_bytes(weights) * 8 / sum(weights.values()), 4)  # llama.cpp prints 4.8944
({'Q4_K': 6498025472, 'Q6_K': 1531969536, 'F32': 266240}, 4.8944)

Source: llama.cpp, src/llama-quant.cpp at commit 007dbbf3 (llama_tensor_get_type_impl, tensor_type_fallback)
"""

from collections.abc import Iterator
from typing import NoReturn

from threeloops import checks
from threeloops.models.architecture import Attention, DenseMlp, LatentAttention, Layer, Model, MoeMlp, Recurrent
from threeloops.models.layers.compressed import CompressedAttention
from threeloops.models.layers.states import KimiDelta, SelectiveScan, ShortConvolution
from threeloops.models.parameters import model_parameters
from threeloops.models.recurrent_layers import DeltaState, StateSpace
from threeloops.product_loop.gguf_formats import GGUF_FORMATS, mixture_bytes
from threeloops.product_loop.gguf_recipes import FALLBACK, FILE_TYPES, recipe_format, table_format

Matrix = tuple[str, int, int]  # role, weights, columns
_GATE = "a gate "  # of heads, read out of what the layer reads: its columns are the model's width
_SHARED = "shared_"  # before the role of a matrix of shared experts, which stand in no stack


def file_weights(model: Model, *, file_type: str) -> dict[str, int]:
    """Weights by block format, in a file of this type.

    Assumes:  llama.cpp's own recipe without overrides, as recipe_format tells it; with an importance matrix IQ4_NL and
              IQ4_XS come out a little smaller, Q4_0 and Q5_0 a little larger
              a matrix's place is counted as llama.cpp counts it: value projections among themselves (queries, keys and
              values of a delta net in one matrix are one of them), feed-forward blocks by their layer where the model
              has experts, else among themselves
              a hybrid's order of layers is not kept: each kind is spread evenly over the depth, and as a recipe gives
              some places more bits, other orders weigh otherwise (forty shuffled ones of Nemotron 3 Nano in Q4_K_M
              from 3 % less to 5 % more)
    Raises:   ValueError for an unknown type, with the known ones, and for a layer that no file's recipe is known of
    Source:   as the module

    >>> from threeloops.models.catalogue import model
    >>> file_weights(model("llama-3-8b"), file_type="Q8_0")
    {'Q8_0': 8029995008, 'F32': 266240}
    """
    checks.one_of(FILE_TYPES, file_type=file_type)
    layers = [(layer, list(_matrices(layer, model))) for layer in _in_order(model)]
    if model.beside:
        _refuse(f"{model.name} has {model.beside.name}")
    values = sum(role == "attn_v" for _, matrices in layers for role, _, _ in matrices)
    with_experts = any(isinstance(layer.mlp, MoeMlp) for layer, _ in layers)
    group_size = _group_size(model)
    found: dict[str, int] = {}
    seen = {"attn_v": 0, "ffn_down": 0, "ffn_up": 0}  # so far
    for number, (layer, matrices) in enumerate(layers):
        for role, weights, columns in matrices:
            kind = role.removeprefix(_SHARED)
            place = seen[kind] if kind == "attn_v" or (kind in seen and not with_experts) else number
            form = recipe_format(
                kind,
                file_type=file_type,
                place=place,
                num_layers=values if kind == "attn_v" else model.num_layers,
                group_size=group_size,
                num_experts=_num_experts(layer),
                stacked=role.startswith("ffn_") and _num_experts(layer) > 1,
            )
            form = _that_divides(columns, form)
            found[form] = found.get(form, 0) + weights
            if kind in seen:
                seen[kind] += 1
    # a table that is the head, too, is kept as a head
    for role in ("output",) if model.tied_head else ("token_embd", "output"):
        form = _that_divides(model.hidden, table_format(role, file_type=file_type, hidden=model.hidden))
        found[form] = found.get(form, 0) + model.vocab * model.hidden
    found["F32"] = model_parameters(model).total - sum(found.values())  # norms, biases, routers, positions
    return found


def file_bytes(model: Model, *, file_type: str) -> float:
    """Bytes of the weights of a file of this type.

    Formula:  sum over formats of weights * bits per weight / 8
    Assumes:  as file_weights; the header (names, vocabulary: some megabytes) is not counted
    Measured: tests.product_loop.test_gguf_files.test_bits_per_weight_are_those_that_llama_cpp_prints

    >>> from threeloops.models.catalogue import model
    >>> file_bytes(model("llama-3-8b"), file_type="Q5_K_M") / 2**30  # printed 5.33
    5.33...
    """
    return mixture_bytes(file_weights(model, file_type=file_type))


def _that_divides(columns: int, form: str) -> str:
    """The format, or the one that llama.cpp falls back to where its block does not divide a row; F16 where that one's
    does not, either.
    """
    possible = (form, FALLBACK.get(form, form))
    return next((one for one in possible if columns % GGUF_FORMATS[one].block == 0), "F16")


def _in_order(model: Model) -> list[Layer]:
    """The layers; of a hybrid, whose order is not kept, each kind spread evenly over the depth."""
    layers = list(model.layers())
    if all(isinstance(layer.attention, Attention | LatentAttention) for layer in layers):
        return layers
    spread = [((nth + 0.5) / count, layer) for layer, count in model.groups for nth in range(count)]
    return [layer for _, layer in sorted(spread, key=lambda one: one[0])]


def _matrices(layer: Layer, model: Model) -> Iterator[Matrix]:
    """Every matrix of a layer that a file quantises; norms, biases, routers and convolutions stay wide."""
    attention, hidden = layer.attention, model.hidden
    beside = layer.beside
    odd = isinstance(attention, Attention) and (attention.blocks or attention.shared_weights)
    odd = odd or (isinstance(attention, LatentAttention) and attention.gated)
    if odd or (beside and beside.matrices and not beside.name.startswith(_GATE)):
        _refuse(f"a layer of {model.name} has {layer.unusual}")
    if beside and beside.matrices:
        yield "attn_other", beside.matrices, hidden
    if isinstance(attention, Attention):
        yield from _attention(attention, hidden)
    elif isinstance(attention, LatentAttention):
        yield from _latent(attention, hidden)
    elif isinstance(attention, CompressedAttention):
        _refuse(f"{model.name} has entries of several tokens in its caches")
    for state in (attention, layer.state):
        if isinstance(state, Recurrent):
            yield from _state(state, model)
    mlp = layer.mlp
    if isinstance(mlp, DenseMlp):
        yield from _feed_forward(mlp, 1, hidden)
    elif mlp is not None:
        if mlp.latent:
            _refuse(f"{model.name} has experts behind a narrower width")
        yield from _feed_forward(mlp.expert, mlp.num_experts, hidden)
        if mlp.shared:
            for role, weights, columns in _feed_forward(mlp.shared, 1, hidden):
                yield f"{_SHARED}{role}", weights, columns


def _refuse(what: str) -> NoReturn:
    raise ValueError(
        f"{what}, whose GGUF files are not counted here; give a format of another kind, for example fp8 or nvfp4"
    )


def _attention(attention: Attention, hidden: int) -> Iterator[Matrix]:
    """Queries (beside them, in the same matrix, a gate), keys, values and the way out."""
    yield "attn_q", (2 if attention.gated else 1) * attention.query_dim * hidden, hidden
    if attention.owns_cache:
        yield "attn_k", attention.kv_dim * hidden, hidden
        if not attention.keys_are_values:
            yield "attn_v", (attention.kept_dim - attention.kv_dim) * hidden, hidden
    yield "attn_output", attention.output_dim * hidden, attention.output_dim


def _state(state: Recurrent, model: Model) -> Iterator[Matrix]:
    """Projections into a recurrent state and out of it; what a delta net's convolution reads stands in one matrix that
    is named as attention's own are.
    """
    hidden = model.hidden
    if isinstance(state, DeltaState):
        yield "attn_v", state.conv_channels * hidden, hidden
        yield "attn_other", (state.input_columns - state.conv_channels) * hidden, hidden
        yield "attn_other", state.value_dim * hidden, state.value_dim
    elif isinstance(state, StateSpace):
        yield "attn_other", state.input_columns * hidden, hidden
        yield "attn_other", state.inner * hidden, state.inner
    elif isinstance(state, SelectiveScan):
        yield "attn_other", 2 * state.inner * hidden, hidden
        yield "attn_other", (state.step_rank + 2 * state.state_dim) * state.inner, state.inner
        yield "attn_other", state.inner * state.step_rank, state.step_rank
        yield "attn_other", state.inner * hidden, state.inner
    elif isinstance(state, ShortConvolution):
        yield "attn_other", 3 * state.channels * hidden, hidden
        yield "attn_other", state.channels * hidden, state.channels
    else:
        kind = "Kimi's delta attention" if isinstance(state, KimiDelta) else "a gated recurrence"
        _refuse(f"{model.name} has {kind}")


def _latent(attention: LatentAttention, hidden: int) -> Iterator[Matrix]:
    """Down and up again; what rebuilds keys stands apart from what rebuilds values, transposed, as decoding absorbs
    it.
    """
    heads, rank = attention.num_heads, attention.kv_rank
    queries = heads * attention.head_dim
    if attention.q_rank is None:
        yield "attn_q", queries * hidden, hidden
    else:
        yield "attn_other", attention.q_rank * hidden, hidden
        yield "attn_other", queries * attention.q_rank, attention.q_rank
    yield "attn_other", (rank + attention.rope_head_dim) * hidden, hidden
    yield "attn_other", heads * attention.nope_head_dim * rank, attention.nope_head_dim
    yield "attn_other", heads * attention.value_head_dim * rank, rank
    yield "attn_output", heads * attention.value_head_dim * hidden, heads * attention.value_head_dim
    if attention.indexer:
        chosen = attention.indexer
        from_width = attention.q_rank or hidden
        yield "attn_other", chosen.num_heads * chosen.head_dim * from_width, from_width
        yield "attn_k", chosen.head_dim * hidden, hidden
        yield "attn_other", chosen.num_heads * hidden, hidden


def _feed_forward(block: DenseMlp, copies: int, hidden: int) -> Iterator[Matrix]:
    each = copies * block.intermediate * hidden
    yield "ffn_up", each * (block.num_matrices - 1), hidden
    yield "ffn_down", each, block.intermediate


def _group_size(model: Model) -> float:
    """Query heads that share a KV head in the first layer that attends."""
    sizes = (layer.attention.group_size for layer, _ in model.groups if isinstance(layer.attention, Attention))
    return next(sizes, 1)


def _num_experts(layer: Layer) -> int:
    return layer.mlp.num_experts if isinstance(layer.mlp, MoeMlp) else 1
