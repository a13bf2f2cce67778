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

from threeloops import checks
from threeloops.models.architecture import Attention, DenseMlp, LatentAttention, Layer, Model, MoeMlp
from threeloops.models.parameters import model_parameters
from threeloops.product_loop.gguf_formats import GGUF_FORMATS, mixture_bytes
from threeloops.product_loop.gguf_recipes import FALLBACK, FILE_TYPES, recipe_format, table_format

Matrix = tuple[str, int, int]  # role, weights, columns
_SHARED = "shared_"  # before the role of a matrix of shared experts, which stand in no stack


def file_weights(model: Model, *, file_type: str) -> dict[str, int]:
    """Weights by block format, in a file of this type.

    Assumes:  llama.cpp's own recipe without overrides, as recipe_format tells it; with an importance matrix IQ4_NL and
              IQ4_XS come out a little smaller, Q4_0 and Q5_0 a little larger
    Raises:   ValueError for an unknown type, with the known ones, for layers without attention, and for an indexer
    Source:   as the module

    >>> from threeloops.models.catalogue import model
    >>> file_weights(model("llama-3-8b"), file_type="Q8_0")
    {'Q8_0': 8029995008, 'F32': 266240}
    """
    checks.one_of(FILE_TYPES, file_type=file_type)
    found: dict[str, int] = {}
    for place, layer in enumerate(model.layers()):
        for role, weights, columns in _matrices(layer, model):
            form = recipe_format(
                role.removeprefix(_SHARED),
                file_type=file_type,
                place=place,
                num_layers=model.num_layers,
                group_size=_group_size(layer),
                num_experts=_num_experts(layer),
                stacked=role.startswith("ffn_") and _num_experts(layer) > 1,
            )
            form = _that_divides(columns, form)
            found[form] = found.get(form, 0) + weights
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


def _matrices(layer: Layer, model: Model) -> Iterator[Matrix]:
    """Every matrix of a layer that a file quantises; norms, biases and routers stay wide."""
    attention = layer.attention
    if layer.unusual:
        raise ValueError(
            f"a layer of {model.name} has {layer.unusual}, whose GGUF files are not counted here; give a format of"
            " another kind, for example fp8 or nvfp4"
        )
    if isinstance(attention, LatentAttention) and not attention.indexer:
        yield from _latent(attention, model.hidden)
    elif isinstance(attention, Attention):
        yield "attn_q", attention.query_dim * model.hidden, model.hidden
        yield "attn_k", attention.kv_dim * model.hidden, model.hidden
        yield "attn_v", attention.kv_dim * model.hidden, model.hidden
        yield "attn_output", attention.query_dim * model.hidden, attention.query_dim
    else:
        kind = "an indexer beside its" if isinstance(attention, LatentAttention) else "layers without"
        raise ValueError(
            f"{model.name} has {kind} attention, whose GGUF files are not counted here; give a format of another kind,"
            " for example fp8 or nvfp4"
        )
    mlp = layer.feeding
    if isinstance(mlp, DenseMlp):
        yield from _feed_forward(mlp, 1, model.hidden)
        return
    yield from _feed_forward(mlp.expert, mlp.num_experts, model.hidden)
    if mlp.shared:
        for role, weights, columns in _feed_forward(mlp.shared, 1, model.hidden):
            yield f"{_SHARED}{role}", weights, columns


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


def _feed_forward(block: DenseMlp, copies: int, hidden: int) -> Iterator[Matrix]:
    each = copies * block.intermediate * hidden
    yield "ffn_up", each * (block.num_matrices - 1), hidden
    yield "ffn_down", each, block.intermediate


def _group_size(layer: Layer) -> float:
    return layer.attention.group_size if isinstance(layer.attention, Attention) else 1


def _num_experts(layer: Layer) -> int:
    return layer.mlp.num_experts if isinstance(layer.mlp, MoeMlp) else 1
