"""A model whose type has no reader, counted on its class where torch and transformers are installed."""

import importlib.util
from pathlib import Path

from threeloops.models.architecture import Model
from threeloops.models.files.config_file import read_config
from threeloops.models.files.gguf_header import ELEMENTS
from threeloops.models.hf_config import UnreadTypeError

NEEDED = ("torch", "transformers")


def counted_on_its_class(path: str, refused: UnreadTypeError) -> Model:
    """The model of this config.json, counted on its class.

    Raises: ValueError with what was refused, and why its class does not help
    """
    content, name = read_config(Path(path))
    if ELEMENTS in content or not isinstance(content.get("model_type"), str):
        raise refused
    missing = [module for module in NEEDED if importlib.util.find_spec(module) is None]
    if missing:
        raise ValueError(
            f"{refused}. With {' and '.join(missing)} installed (pip install {' '.join(missing)}) a type that"
            " transformers knows is counted on its class"
        ) from refused
    from threeloops.measure.models import counted_class

    own = content.get("_name_or_path")
    try:
        return counted_class.counted_model(
            content, name=own if isinstance(own, str) and own.isprintable() and own else name
        )
    except ValueError as error:
        raise ValueError(f"{refused}. It was not counted on its class: {error}") from error
