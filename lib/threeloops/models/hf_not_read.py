"""Architectures that are known by name and not read: what each keeps that no layer here describes.

Source: modeling_*.py of Hugging Face transformers 5.23.0, https://github.com/huggingface/transformers; for names that
        are not in it, the config.json of the maker
"""

_SIDE_BY_SIDE = "every layer has attention and a recurrent state side by side; a layer here has one of the two"
_ENCODER_DECODER = "it has an encoder beside its decoder, and a cache for both; only decoders are read"

NOT_READ = {
    "hymba": _SIDE_BY_SIDE,
    "minimax": "lightning attention, whose state is another, would have to be described",
    "mllama": "layers that attend to images would have to be described",
    "rwkv": "it has no attention, and a state of another kind; only hybrids are read",
    "t5": _ENCODER_DECODER,
    "bart": _ENCODER_DECODER,
    "whisper": _ENCODER_DECODER,
}
