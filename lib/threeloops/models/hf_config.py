"""A model read from the config.json that its checkpoint ships with.

>>> tiny = {"model_type": "gpt2", "n_embd": 48, "n_layer": 3, "n_head": 4, "n_positions": 64, "vocab_size": 100}
>>> from_hf_config(tiny, name="tiny").groups[0][0].mlp
DenseMlp(intermediate=192, gated=False, activation='gelu_new', bias=True)

Source: the configuration and modelling files of Hugging Face transformers 5.23.0,
        https://github.com/huggingface/transformers
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from threeloops import checks
from threeloops.models.architecture import Model
from threeloops.models.hf_families import FAMILIES
from threeloops.models.hf_fields import CHANGES_NO_COUNT, Fields


def from_hf_config(config: str | Path | Mapping[str, Any], *, name: str | None = None) -> Model:
    """A model from a config.json: the file, the folder that holds it, or its content.

    Assumes:  a language model with its output head; modules outside the decoder (a vision tower, multi-token
              prediction) are left out
    Raises:   ValueError for an unknown model_type, a missing or unknown field, and sizes that do not fit together

    >>> from_hf_config(
    ...     {"model_type": "gpt2", "n_embd": 48, "n_layer": 3, "n_head": 5, "n_positions": 64, "vocab_size": 100}
    ... )
    Traceback (most recent call last):
        ...
    ValueError: config: n_head=5 must divide n_embd=48; try n_head in {1, 2, 3, 4, 6, 8, 12, 16, 24, 48}
    """
    content, place = (config, "config") if isinstance(config, Mapping) else _read_file(Path(config))
    try:
        return _model(content, name=name or content.get("_name_or_path") or place)
    except ValueError as error:
        raise ValueError(f"{name or place}: {error}") from error


def _read_file(path: Path) -> tuple[Mapping[str, Any], str]:
    file = path / "config.json" if path.is_dir() else path
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(
            f"{str(file)!r} cannot be read ({error.strerror}); give a config.json or the folder that holds one"
        ) from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{str(file)!r} is not UTF-8 text; give a config.json") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{str(file)!r} is not JSON: {str(error) or 'it is nested too deeply'}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{str(file)!r} holds no object with fields but {str(content)[:40]!r}; give a config.json")
    return content, path.name if path.is_dir() else path.stem


def _model(config: Mapping[str, Any], *, name: str) -> Model:
    if "model_type" not in config:
        raise ValueError(f"'model_type' is missing; it must be one of {', '.join(FAMILIES)}, gemma3")
    model_type = config["model_type"]
    checks.one_of((*FAMILIES, "gemma3"), model_type=model_type)
    named = config.get("architectures") or []
    for architecture in [named] if isinstance(named, str) else named:
        if not str(architecture).endswith(("ForCausalLM", "LMHeadModel", "Gemma3ForConditionalGeneration")):
            raise ValueError(
                f"architectures={architecture!r} has no language-model head; only ...ForCausalLM and ...LMHeadModel are"
                " counted"
            )
    if model_type == "gemma3":
        return _model(_text_part(config), name=name)
    fields = Fields(config, model_type)
    model = FAMILIES[model_type](fields, name)
    fields.refuse_unread()
    return model


def _text_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The text decoder inside a multimodal Gemma 3 config; the vision tower is another model."""
    known = CHANGES_NO_COUNT | {"model_type", "architectures", "text_config", "vision_config", "tie_word_embeddings"}
    known |= {"mm_tokens_per_image", "boi_token_index", "eoi_token_index", "image_token_index", "quantization_config"}
    unknown = sorted(set(config) - known)
    if unknown:
        raise ValueError(
            f"{unknown[0]!r} is a field that gemma3 configs are not known to have; it may change a count: remove it if"
            " it changes none"
        )
    if not isinstance(config.get("text_config"), Mapping):
        raise ValueError("'text_config' is missing; a gemma3 config keeps its language model there")
    outer = {key: config[key] for key in ("tie_word_embeddings",) if key in config}
    return {"model_type": "gemma3_text", **outer, **config["text_config"]}
