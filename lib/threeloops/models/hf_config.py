"""A model read from the config.json that its checkpoint ships with.

>>> tiny = {"model_type": "gpt2", "n_embd": 48, "n_layer": 3, "n_head": 4, "n_positions": 64, "vocab_size": 100}
>>> from_hf_config(tiny, name="tiny").groups[0][0].mlp
DenseMlp(intermediate=192, gated=False, activation='gelu_new', bias=True)

Source: the configuration and modelling files of Hugging Face transformers 5.23.0,
        https://github.com/huggingface/transformers
"""

from collections.abc import Mapping, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

from threeloops import checks
from threeloops.models.architecture import Model
from threeloops.models.files.by_fields import read_by_its_fields, why_not_by_its_fields
from threeloops.models.files.config_file import read_config, what_lies_beside
from threeloops.models.files.gguf_header import ELEMENTS
from threeloops.models.files.heads import no_language_model, refuse_other_heads
from threeloops.models.files.known_by_class import by_letters, read_under_another_name, squeezed
from threeloops.models.files.left_out import beside_the_decoder
from threeloops.models.files.quantised import said_stored
from threeloops.models.files.within import WITHIN, decoder_within
from threeloops.models.hf_encoders import ENCODERS, encoder_sentence
from threeloops.models.hf_families import FAMILIES
from threeloops.models.hf_fields import CHANGES_NO_COUNT, NOTED, NUMBERS_OF_TOKENS, Fields
from threeloops.models.hf_not_read import NOT_READ
from threeloops.models.parameters import model_parameters
from threeloops.models.readers.first_forms import FIRST_FORMS
from threeloops.models.readers.own_code import OWN_CODE
from threeloops.models.readers.ships_its_code import SHIPS_ITS_CODE


def from_hf_config(config: str | Path | Mapping[str, Any], *, name: str | None = None) -> Model:
    """A model from a config.json: the file, the folder that holds it, or its content.

    Assumes:  a language model with its output head; modules outside the decoder (a vision tower, multi-token
              prediction) are left out, and named in its `not_counted`
    Raises:   ValueError for an unknown model_type, a missing or unknown field, and sizes that do not fit together

    >>> from_hf_config(
    ...     {"model_type": "gpt2", "n_embd": 48, "n_layer": 3, "n_head": 5, "n_positions": 64, "vocab_size": 100}
    ... )
    Traceback (most recent call last):
        ...
    ValueError: config: n_head=5 must divide n_embd=48; try n_head in {1, 2, 3, 4, 6, 8, 12, 16, 24, 48}
    """
    content, place = (config, "config") if isinstance(config, Mapping) else read_config(Path(config))
    if "model_type" not in content and (instead := what_lies_beside(content)):
        raise ValueError(f"{place if isinstance(config, Mapping) else repr(str(config))} {instead}")
    try:
        model = _model(content, name=name or _own_name(content) or place)
        _refuse_other_tensors(content, model)
        return replace(model, not_counted=beside_the_decoder(content), stored=said_stored(content))
    except UnreadTypeError as error:
        raise UnreadTypeError(f"{name or place}: {error}") from error
    except ValueError as error:
        raise ValueError(f"{name or place}: {error}") from error


class UnreadTypeError(ValueError):
    """A model_type without a reader: its class may still be counted, where it is installed."""


def _refuse_other_tensors(content: Mapping[str, Any], model: Model) -> None:
    """A GGUF file lists its tensors: a second opinion on what was read from its header."""
    held, counted = content.get(ELEMENTS), model_parameters(model).total
    if held is not None and held != counted:
        raise ValueError(f"its tensors have {held:,} elements, but its header, as it is read, means {counted:,}")


def _own_name(content: Mapping[str, Any]) -> str | None:
    """What the file calls itself, where that can be printed on a line."""
    own = content.get("_name_or_path")
    return own if isinstance(own, str) and own.isprintable() else None


def _model(config: Mapping[str, Any], *, name: str) -> Model:
    model_type = config.get("model_type")
    if isinstance(model_type, str) and model_type in NOT_READ:
        raise UnreadTypeError(f"model_type={model_type!r} is not read: {NOT_READ[model_type]}")
    if isinstance(model_type, str) and model_type in ENCODERS:
        raise ValueError(encoder_sentence(config))
    if not isinstance(model_type, str | None):
        raise UnreadTypeError(f"model_type={checks.shortened(model_type)} is not read; {_LISTED}")
    flat = model_type in WRAPPERS and model_type not in _FLAT and "text_config" not in config
    if model_type not in READ or flat:
        other = read_under_another_name(config, by_letters(READ))
        if other and other[0]["model_type"] != model_type:
            model = _model(other[0], name=name)
            return replace(model, noted=(other[1], *model.noted))
    if model_type not in READ:
        if own := read_by_its_fields(config):
            try:
                model = _model(own[0], name=name)
            except ValueError as error:
                why = str(error).partition("; it may change a count")[0]
                raise UnreadTypeError(f"{own[1]}, it is refused: {why}; {_LISTED}") from error
            return replace(model, noted=(own[1], *model.noted))
        if "model_type" not in config:
            raise ValueError(f"'model_type' is missing, which every config.json has; {_LISTED}")
        why = _same_letters(model_type) or no_language_model(config) or why_not_by_its_fields(config)
        raise UnreadTypeError(f"model_type={model_type!r} is not read{why}; {_LISTED}")
    if model_type in WITHIN:
        return _model(decoder_within(config), name=name)
    if model_type in OMNI:
        return _model(_thinker(config, model_type), name=name)
    refuse_other_heads(config, multimodal=model_type.removesuffix("_text") in (*WRAPPERS, "chatglm"))
    if model_type in WRAPPERS:
        return _model(_text_part(config, model_type), name=name)
    config = {**_NEVER.get(model_type, {}), **config}
    model_type = SAME_CLASS.get(model_type, model_type)
    fields = Fields(config, model_type)
    model = (FAMILIES | OWN_CODE | SHIPS_ITS_CODE | FIRST_FORMS)[model_type](fields, name)
    fields.refuse_unread()
    assumed = tuple(f"{name}={value}" for name, value in fields.assumed.items())
    return replace(model, assumed=assumed, noted=fields.noted())


_LISTED = "`threeloops sources --types` lists the types that are"


def _same_letters(model_type: object) -> str:
    """A type that is written the same but for its case and signs; near letters alone are another architecture."""
    same = by_letters(READ).get(squeezed(model_type))
    return f" (did you mean {same!r}?)" if same else ""


# Multimodal configs, which keep their language model in text_config; the model_type that stands there, if none does.
WRAPPERS = {
    "gemma3": "gemma3_text",
    "llama4": "llama4_text",
    "mistral3": "mistral",
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "kimi_k25": "kimi_k2",
    "kimi_k3": "kimi_linear",
    "qwen2_vl": "qwen2_vl_text",
    "qwen2_5_vl": "qwen2_5_vl_text",
    "llava": "llama",
    "llava_next": "llama",
    "llava_onevision": "qwen2",
    "cohere2_vision": "cohere2",
    "idefics3": "llama",
    "smolvlm": "llama",
    "paligemma": "gemma",
    "gemma3n": "gemma3n_text",
    "gemma4": "gemma4_text",
    "gemma4_unified": "gemma4_unified_text",
    "minimax_m3_vl": "minimax_m3_vl_text",
    "lfm2_vl": "lfm2",
    "aya_vision": "cohere2",
    "internvl": "qwen2",
    "llava_next_video": "llama",
    "glm4v": "glm4v_text",
    "glm46v": "glm4v_text",
    "glm4v_moe": "glm4v_moe_text",
    "ovis2": "qwen2",
    "qwen2_5_omni_thinker": "qwen2_5_omni_text",
    "qwen3_omni_moe_thinker": "qwen3_omni_moe_text",
    "step3p7": "step3p5",
    "exaone4_5": "exaone4",
    "voxtral": "llama",
}
# Configs around a wrapper's: the part that reads and writes text, beside one that speaks.
OMNI = {"qwen2_5_omni": "qwen2_5_omni_thinker", "qwen3_omni_moe": "qwen3_omni_moe_thinker"}
# Published before their language model had a part of its own: its fields stand beside the tower's.
_FLAT = ("qwen2_vl", "qwen2_5_vl", "step3p7")
# A name of its own for layers of another family.
SAME_CLASS = {"kimi_k2": "deepseek_v3", "deepseek_ref": "deepseek_v4", "exaone4_5_text": "exaone4"}
SAME_CLASS |= {"gemma4_unified_text": "gemma4_text", "codegen": "gptj", "moss": "gptj"}
# What the other family may have and these have not, where a file says nothing.
_NEVER: Mapping[str, Mapping[str, Any]] = {"gemma4_unified_text": {"hidden_size_per_layer_input": 0}}
SAME_CLASS |= {"minimax_m3": "minimax_m3_vl_text", "phi4mm": "phi4_multimodal"}
READ = (*FAMILIES, *OWN_CODE, *SHIPS_ITS_CODE, *FIRST_FORMS, *SAME_CLASS, *WRAPPERS, *OMNI, *WITHIN)

# Fields about the towers beside the language model, and about where their tokens stand.
_AROUND_THE_TEXT = CHANGES_NO_COUNT | {
    "model_type", "architectures", "text_config", "vision_config", "tie_word_embeddings", "quantization_config",
    "quantization",
    "mm_tokens_per_image", "boi_token_index", "eoi_token_index", "image_token_index", "image_token_id",
    "video_token_id", "vision_start_token_id", "vision_end_token_id", "media_placeholder_token_id", "ignore_index",
    "use_unified_vision_chunk", "video_placeholder", "multimodal_projector_bias", "projector_hidden_act",
    "spatial_merge_size", "vision_feature_layer", "language_model_only", "vision_token_id", "image_seq_length",
    "vision_feature_select_strategy", "image_grid_pinpoints", "use_image_newline_parameter", "vision_aspect_ratio",
    "downsample_ratio", "downsample_factor", "adapter_layer_norm_eps", "alignment_intermediate_size", "scale_factor",
    "projection_dim", "num_image_tokens", "image_placeholder",
}  # fmt: skip
_AUDIO = {
    "audio_config", "audio_token_id", "boa_token_id", "eoa_token_id", "eoa_token_index", "boi_token_id", "eoi_token_id",
    "vision_soft_tokens_per_image", "audio_soft_tokens_per_image", "audio_token_index",
}  # fmt: skip
# Where images, sound and speakers begin and end among the tokens.
_MARKS = {
    "image_start_token_id", "image_end_token_id", "video_start_token_id", "video_end_token_id", "audio_start_token_id",
    "audio_end_token_id", "user_token_id", "position_id_per_seconds", "seconds_per_chunk", "video_token_index",
}  # fmt: skip
# Fields that one wrapper has and others are not known to have.
_AROUND_ONE: Mapping[str, Set[str]] = {
    "gemma3n": _AUDIO,
    "gemma4": _AUDIO,
    "gemma4_unified": _AUDIO,
    "voxtral": _AUDIO,
    "minimax_m3_vl": {
        "projector_hidden_size", "img_token_compression_config", "image_token_compression_config", "video_token_index",
        "spatial_merge_size", "temporal_patch_size", "merged_hidden_size", "process_image_mode",
    },
    "lfm2_vl": {
        "projector_hidden_size", "projector_bias", "projector_use_layernorm", "do_image_splitting", "max_image_tokens",
        "encoder_patch_size", "max_num_patches", "max_pixels_tolerance", "max_tiles", "min_image_tokens", "min_tiles",
        "tile_size", "use_image_special_tokens", "use_thumbnail", "use_image_token",
    },
    "llava_next_video": {"spatial_pool_mode", "spatial_pool_stride", "video_token_index", "video_seq_length"},
    **dict.fromkeys(("glm4v", "glm46v", "glm4v_moe"), _MARKS),
    "ovis2": {"visual_indicator_token_ids", "vocab_size", "hidden_size"},
    **dict.fromkeys(("qwen2_5_omni_thinker", "qwen3_omni_moe_thinker"), _AUDIO | _MARKS),
    "step3p7": {
        "projector_bias", "image_token_len", "patch_token_len", "im_start_token", "im_end_token", "im_patch_token",
        "understand_projector_stride", "vision_select_layer", "use_im_start_end",
    },
}  # fmt: skip
_AROUND_THE_THINKER = {
    "thinker_config", "talker_config", "token2wav_config", "code2wav_config", "enable_audio_output",
    "enable_talker", "assistant_token_id", "system_token_id", "user_token_id", "im_start_token_id", "im_end_token_id",
    "tts_bos_token_id", "tts_eos_token_id", "tts_pad_token_id",
}  # fmt: skip

# What decides, outside the text's own part, whether the head is the table: the class's default where nothing is said.
# Mistral 3's is left to its text: checkpoints from before that default say nothing, and have both.
_TIED_OUTSIDE = {"gemma3": True, "qwen3_vl": False, "qwen3_vl_moe": False, "qwen3_5": False, "qwen3_5_moe": False}
_TIED_OUTSIDE |= {"llava_next": False, "idefics3": False, "smolvlm": False, "cohere2_vision": True, "paligemma": True}
_TIED_OUTSIDE |= dict.fromkeys(("gemma3n", "gemma4", "gemma4_unified", "lfm2_vl", "aya_vision", "internvl"), True)
_TIED_OUTSIDE |= {"ovis2": True, "qwen2_5_omni_thinker": False, "qwen3_omni_moe_thinker": False}
_TIED_OUTSIDE |= {"glm46v": False, "step3p7": False, "exaone4_5": False}
_TIED_INSIDE, _TIED_NEVER = ("llama4",), ("voxtral",)
_TIED_EITHER = {"qwen2_vl", "qwen2_5_vl", "llava", "llava_onevision", "minimax_m3_vl", "llava_next_video"}
_TIED_EITHER |= {"glm4v", "glm4v_moe"}


def _tied(config: Mapping[str, Any], model_type: str) -> Mapping[str, Any]:
    """What a wrapper says of its text's table and head, over what the text says; nothing where the text decides."""
    if model_type in (*_TIED_INSIDE, *_TIED_NEVER):
        return {} if model_type in _TIED_INSIDE else {"tie_word_embeddings": False}
    said = config.get("tie_word_embeddings", _TIED_OUTSIDE.get(model_type))
    if model_type in _TIED_EITHER:
        text = config.get("text_config") or {}
        return {"tie_word_embeddings": bool(said or text.get("tie_word_embeddings"))}
    return {} if said is None else {"tie_word_embeddings": said}


def _stated(config: Mapping[str, Any]) -> set[str]:
    """The fields around a text's own part that may change a count: a token's number never does, nor heads of which
    there are none.
    """
    stated = {name for name, value in config.items() if value is not None and not name.startswith("_")}
    none = {name for name in ("num_reward_heads",) if config.get(name) == 0}
    return {name for name in stated - none if not name.endswith(NUMBERS_OF_TOKENS) and not name.startswith(NOTED)}


def _thinker(config: Mapping[str, Any], model_type: str) -> Mapping[str, Any]:
    """The part of an omni model that reads and writes text; what speaks is named in `not_counted`."""
    thinker = config.get("thinker_config")
    if not isinstance(thinker, Mapping):
        raise ValueError(f"'thinker_config' is missing; a {model_type} config keeps its language model there")
    unknown = sorted(_stated(config) - _AROUND_THE_THINKER - _AROUND_THE_TEXT)
    if unknown:
        raise ValueError(
            f"{unknown[0]!r} is a field that {model_type} configs are not known to have; remove it if it changes none"
        )
    return {**thinker, "model_type": OMNI[model_type]}


def _text_part(config: Mapping[str, Any], model_type: str) -> Mapping[str, Any]:
    """The text decoder inside a multimodal config; the vision tower is another model."""
    text = config.get("text_config")
    if text is None and model_type in _FLAT:
        return {
            "model_type": WRAPPERS[model_type],
            **{name: config[name] for name in config.keys() - (_AROUND_THE_TEXT - CHANGES_NO_COUNT)},
            **_tied(config, model_type),
        }
    if not isinstance(text, Mapping):
        raise ValueError(f"'text_config' is missing; a {model_type} config keeps its language model there")
    # What stands in the text's own part too is read there, as its class does.
    unknown = sorted(_stated(config) - _AROUND_THE_TEXT - _AROUND_ONE.get(model_type, set()) - text.keys())
    if unknown:
        raise ValueError(
            f"{unknown[0]!r} is a field that {model_type} configs are not known to have; it may change a count: remove"
            " it if it changes none"
        )
    part = {"model_type": WRAPPERS[model_type], **text, **_tied(config, model_type)}
    if part.get("architectures") == config.get("architectures"):  # some programs write the whole's there, too
        part["architectures"] = None
    if part["model_type"] in WRAPPERS:
        raise ValueError(f"text_config has model_type={part['model_type']!r}; a language model has to stand there")
    return part
