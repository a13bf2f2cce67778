"""What a config.json names that no count of its decoder includes.

>>> beside_the_decoder({"vision_config": {}})
('its vision tower',)
"""

from collections.abc import Mapping
from typing import Any

# What a checkpoint may hold beside its decoder: field of its config.json -> what that is.
_TOWERS = {"vision_config": "its vision tower", "audio_config": "its audio tower", "visual": "its vision tower"}
_TOWERS |= {"embd_layer": "its towers for images and sound", "vision_lora": "the adapters that go with images"}
_GUESSING = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "num_mtp_layers")


def beside_the_decoder(config: Mapping[str, Any]) -> tuple[str, ...]:
    """What the file names that no count here includes: towers for images and sound, layers that guess further tokens.

    >>> beside_the_decoder({"model_type": "deepseek_v3", "num_nextn_predict_layers": 1})
    ('1 layer for multi-token prediction',)
    >>> beside_the_decoder({"vision_config": {}, "text_config": {"num_mtp_modules": 3}})
    ('its vision tower', '3 layers for multi-token prediction')
    """
    if isinstance(config.get("thinker_config"), Mapping):
        speaks = ("what speaks (talker and waveform)",) if config.get("talker_config") is not None else ()
        return (*beside_the_decoder(config["thinker_config"]), *speaks)
    text = config.get("text_config")
    fields = {**config, **text} if isinstance(text, Mapping) else config
    numbers = [fields[name] for name in _GUESSING if type(fields.get(name)) is int and fields[name] > 0]
    guessing = [f"{number} layer{'s' * (number > 1)} for multi-token prediction" for number in numbers[:1]]
    return (*(words for name, words in _TOWERS.items() if isinstance(config.get(name), Mapping)), *guessing)
