"""A model counted on its class in transformers, for types that no reader describes.

Parameters are those that the class holds. Its cache is what it keeps of prompts of three lengths: what grows by as much
for every token is a cache, what stays the same is a state, and a window shows itself where its number in the config is
made small enough to be filled.
"""

import dataclasses
import functools
import json
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from transformers import PreTrainedConfig

from threeloops import units
from threeloops.measure.models.class_steps import Place, Shapes, built, class_config, first_line, held, kept, quietly
from threeloops.models.architecture import Attention, Layer, Model
from threeloops.models.files.heads import refuse_other_heads
from threeloops.models.files.left_out import beside_the_decoder
from threeloops.models.files.quantised import said_stored
from threeloops.models.hf_fields import LARGEST
from threeloops.models.layers.beside import Beside
from threeloops.models.layers.counted import ON_ITS_CLASS, CountedState
from threeloops.models.layers.indexers import BlockIndexer

LENGTHS = (3, 5, 9)  # tokens of a prompt: a scan goes through them one by one, in Python
SMALL_WINDOW = 6  # filled by the last of them, and not by the others
WINDOWS = ("sliding_window", "sliding_window_size", "attention_chunk_size", "window_size", "attention_window_size")
_POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length")
_BESIDE = Beside(name=ON_ITS_CLASS)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """One tensor that a layer keeps."""

    grows: bool
    tokens: int  # at the last length
    heads: int
    width: int
    before: int  # numbers that are there at no token

    @property
    def windowed(self) -> bool:
        return self.grows and self.tokens in (SMALL_WINDOW, SMALL_WINDOW - 1)


def counted_model(content: Mapping[str, Any], *, name: str) -> Model:
    """The model of a config.json, counted on its class; the same content is counted once.

    Assumes:  the class is the one that transformers registers for this model_type with a language model's head; of a
              multimodal config, that of its text
    Raises:   ValueError where transformers has no such class, or it cannot be built and stepped without values
    Source:   by definition: parameters that the class holds, tensors in the cache that it returns
    Measured: measure.product_loop.kv_cache.weighed_cache
    """
    try:
        with quietly():
            counted = _counted(json.dumps(content, sort_keys=True, default=str))
    except ValueError:
        raise
    except Exception as error:  # a class may do anything
        raise ValueError(f"its class in transformers is not understood here: {first_line(error)}") from error
    return dataclasses.replace(counted, name=name)


@functools.cache
def _counted(text: str) -> Model:
    content = json.loads(text)
    refuse_other_heads(content, multimodal=True)
    config = class_config(content)
    fields = [field for field in WINDOWS if type(getattr(config, field, None)) is int and getattr(config, field) > 0]
    said = {getattr(config, field) for field in fields}
    if len(said) > 1:
        raise ValueError(f"its class has windows of several sizes, which are not told apart: {', '.join(fields)}")
    window = next(iter(said), None)
    weights = held(model := built(config), how="")
    vocab, hidden = model.get_input_embeddings().weight.shape
    longest = next((value for field in _POSITIONS if type(value := getattr(config, field, None)) is int), LARGEST)
    if window:
        for field in fields:
            setattr(config, field, SMALL_WINDOW)
        model = built(config)
    layers = _layers(kept(model, LENGTHS), config, window=window)
    limited = sum(layer.attention.window is not None for layer in layers if isinstance(layer.attention, Attention))
    lengths = ", ".join(map(str, LENGTHS[:-1]))
    how = (
        f"{type(model).__name__} of transformers {metadata.version('transformers')}, built and stepped without values:"
        f" {weights.total:,} parameters, and a cache as it is after {lengths} and {LENGTHS[-1]} tokens"
    )
    if window:
        limits = units.counted(limited, "layer") if limited else "no layer"
        how += f"; {fields[0]} {window:,} limits {limits}, as {SMALL_WINDOW} in its place shows"
    return Model(
        name=content["model_type"],
        hidden=hidden,
        vocab=vocab,
        groups=tuple((layer, layers.count(layer)) for layer in dict.fromkeys(layers)),
        tied_head=not weights.head,
        max_context=longest,
        counted=dataclasses.replace(weights, how=how),
        not_counted=beside_the_decoder(content),
        stored=said_stored(content),
    )


def _layers(found: list[Shapes], config: PreTrainedConfig, *, window: int | None) -> list[Layer]:
    """What each layer keeps; one that keeps nothing is left out."""
    by_layer: dict[int | None, dict[str, _Kept]] = {}
    for place in found[-1]:
        by_layer.setdefault(place[0], {})[place[1]] = _one([shapes.get(place) for shapes in found], place)
    layers = [_layer(tensors, config, window=window) for _, tensors in sorted(by_layer.items(), key=str)]
    if not layers:
        raise ValueError("its class in transformers keeps nothing of a prompt")
    return layers


def _one(shapes: list[tuple[int, ...] | None], place: Place) -> _Kept:
    """How one tensor's shape follows the prompt's length.

    Raises: ValueError where three lengths do not explain it
    """
    known = [shape for shape in shapes if shape is not None]
    last = known[-1]
    unclear = ValueError(
        f"its class keeps {place[1]!r} in the shapes {', '.join(map(str, shapes))} of {', '.join(map(str, LENGTHS))}"
        " tokens, in which a cache, a window or a state is not recognised"
    )
    if len(known) < len(LENGTHS) or len({len(shape) for shape in known}) > 1 or last[0] != 1:
        raise unclear
    moving = [axis for axis in range(len(last)) if len({shape[axis] for shape in known}) > 1]
    others = [size for axis, size in enumerate(last) if axis not in (0, *moving)]
    heads, width = (others[0] if len(others) > 1 else 1), 1
    for size in others[len(others) > 1 :]:
        width *= size
    if not moving:
        return _Kept(grows=False, tokens=0, heads=heads, width=width, before=0)
    sizes = [shape[moving[0]] for shape in known]
    before = sizes[0] - LENGTHS[0]
    as_long = [tokens + before for tokens in LENGTHS]
    inside = [*LENGTHS[:-1], sizes[-1]]
    if len(moving) > 1 or (sizes != as_long and (sizes != inside or sizes[-1] < SMALL_WINDOW - 1)):
        raise unclear
    return _Kept(grows=True, tokens=sizes[-1], heads=heads, width=width, before=before * heads * width)


def _layer(tensors: Mapping[str, _Kept], config: PreTrainedConfig, *, window: int | None) -> Layer:
    """A layer by its tensors: keys and values, an index key beside them, and states."""
    growing = {name.rsplit(".", maxsplit=1)[-1]: one for name, one in tensors.items() if one.grows}
    still = {name: one for name, one in tensors.items() if not one.grows}
    sizes = {name: one.heads * one.width for name, one in still.items()}
    conv = sum(size for name, size in sizes.items() if "conv" in name) + sum(one.before for one in growing.values())
    state = None
    if conv or sizes:
        state = CountedState(
            state_heads=max((one.heads for one in still.values()), default=1),
            state_elements=sum(size for name, size in sizes.items() if "conv" not in name),
            conv_elements=conv,
        )
    if not growing:
        return Layer(attention=state, mlp=None, norm="layernorm-no-weight", num_norms=1, beside=_BESIDE)
    keys, values = (growing.pop(name, None) for name in ("keys", "values"))
    limits = {one.windowed for one in (keys, values, *growing.values()) if one}
    if keys is None or values is None or keys.heads != values.heads or len(growing) > 1 or len(limits) > 1:
        raise ValueError(f"a layer of its class keeps {', '.join(tensors)}, which no cache here describes")
    heads = config.num_attention_heads if type(getattr(config, "num_attention_heads", None)) is int else keys.heads
    index = [BlockIndexer(num_heads=1, head_dim=one.heads * one.width, block=1, top_k=1) for one in growing.values()]
    attention = Attention(
        num_heads=heads if heads % keys.heads == 0 else keys.heads,
        num_kv_heads=keys.heads,
        head_dim=keys.width,
        value_head_dim=None if values.width == keys.width else values.width,
        window=window if keys.windowed else None,
        blocks=index[0] if index else None,
        shared_weights=True,
    )
    return Layer(attention=attention, mlp=None, norm="layernorm-no-weight", num_norms=1, state=state, beside=_BESIDE)
