"""Architectures that are known by name and not read: what each keeps that no layer here describes.

Source: modeling_*.py of Hugging Face transformers 5.23.0, https://github.com/huggingface/transformers; for names that
        are not in it, the config.json of the maker
"""

_SCAN = "a layer of Mamba 1, whose state and projections have other sizes than Mamba 2's, would have to be described"
_SIDE_BY_SIDE = "every layer has attention and a recurrent state side by side; a layer here has one of the two"
_ENCODER_DECODER = "it has an encoder beside its decoder, and a cache for both; only decoders are read"
_UNEQUAL = "its layers have unequal sizes, listed one by one; a reader of that list would be needed"
_OUTSIDE = "its class ships with the checkpoint and not with transformers, so that nothing could check the count"

NOT_READ = {
    "bamba": "Granite 4's granitemoehybrid is the nearest that is read; its own reader would be needed",
    "deci": _UNEQUAL,
    "falcon_mamba": _SCAN,
    "hymba": _SIDE_BY_SIDE,
    "kimi_k3": "its residual streams, gates and narrower experts are not in transformers' kimi_linear, so that nothing"
    " could check the count",
    "mamba": _SCAN,
    "mamba2": "it has no attention and no cache that grows; only hybrids are read",
    "mimo": _OUTSIDE,
    "mimo_v2_flash": "its keys are wider than its values; a width of its own for values would be needed",
    "minimax": "lightning attention, whose state is another, would have to be described",
    "minimax_m3": _OUTSIDE,
    "mllama": "layers that attend to images would have to be described",
    "nemotron-nas": _UNEQUAL,
    "recurrent_gemma": "its gated linear recurrence would have to be described",
    "rwkv": "it has no attention, and a state of another kind; only hybrids are read",
    "t5": _ENCODER_DECODER,
    "bart": _ENCODER_DECODER,
    "whisper": _ENCODER_DECODER,
    "zamba2": "layers share one block of attention; a reader of that would be needed",
}
