"""The fields of a Hugging Face config.json: which are read, which may be left out, which change no count.

A config is understood only when every field in it is: one that is neither read nor listed here is refused by name,
because it may describe a layer that nobody counted.
"""

import re
from collections.abc import Mapping
from typing import Any

from threeloops import checks
from threeloops.models.hf_defaults import class_defaults, second_names

# Fields that change neither the number of parameters nor what a token reads.
# fmt: off
CHANGES_NO_COUNT = frozenset({
    # bookkeeping
    "_name_or_path", "auto_map", "transformers_version", "torch_dtype", "dtype", "id2label", "label2id",
    "problem_type", "task_specific_params",
    # what programs that saved or converted the file noted about themselves
    "unsloth_fixed", "unsloth_version", "quantization_status", "model_name", "transformers.js_config", "use_flash_attn",
    "attn_implementation", "model_max_length", "max_sequence_length", "seq_length", "neftune_noise_alpha",
    "use_grouped_mm", "is_llama_config", "rope_interleaved", "fuse_cross_entropy", "fuse_linear_cross_entropy",
    "fuse_norm", "fuse_swiglu", "num_image_tokens", "for_llm_compressor",
    "pad_token", "bos_token", "eos_token",
    "return_dict", "output_attentions", "output_hidden_states", "output_past", "output_router_logits",
    "chunk_size_feed_forward", "prefix",
    "_attn_implementation", "_attn_implementation_autoset", "tokenizer_class", "finetuning_task", "torchscript",
    "is_decoder", "use_bfloat16", "tf_legacy_loss",
    # how text is generated: old files keep it here
    "bad_words_ids", "badwordsids", "initial_tokenizer_len",
    "begin_suppress_tokens", "suppress_tokens", "diversity_penalty", "do_sample", "early_stopping",
    "encoder_no_repeat_ngram_size", "no_repeat_ngram_size", "exponential_decay_length_penalty", "forced_bos_token_id",
    "forced_eos_token_id", "length_penalty", "repetition_penalty", "max_length", "min_length", "num_beams",
    "num_beam_groups", "num_return_sequences", "output_scores", "remove_invalid_values", "return_dict_in_generate",
    "temperature", "top_k", "top_p", "typical_p", "num_logits_to_keep",
    # token ids
    "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "eod_token_id", "decoder_start_token_id",
    # initial values, numerical floors, dropout
    "initializer_range", "init_std", "rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps", "norm_eps", "norm_epsilon",
    "hidden_dropout", "residual_dropout", "embedding_dropout", "expert_dropout", "classifier_dropout",
    "rescale_prenorm_residual", "residual_in_fp32",
    "dropout", "attention_dropout", "activation_dropout", "layerdrop", "resid_pdrop", "embd_pdrop", "attn_pdrop",
    # rotary positions: computed, not stored; n_ctx is an old second name of n_positions
    "rope_theta", "rope_scaling", "rope_parameters", "rope_local_base_freq", "rope_interleave", "partial_rotary_factor",
    "original_max_position_embeddings", "initial_context_length", "n_ctx", "rotary_dim", "rotary_pct",
    "rotary_emb_base", "use_mrope", "mrope_section",
    "mrope_interleaved", "indexer_rope_interleave", "no_rope_layers", "no_rope_layer_interval",
    # how scores, gates and logits are scaled or clipped
    "scale_attn_weights", "scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "query_pre_attn_scalar",
    "attn_logit_softcapping",
    "final_logit_softcapping", "swiglu_alpha", "swiglu_limit", "clip_qkv", "logit_scale", "attn_temperature_tuning",
    "floor_scale", "attn_scale", "embedding_multiplier", "logits_scaling", "residual_multiplier",
    "attention_multiplier", "output_gate_type",
    # how experts are chosen among those that exist, and losses that train the choice
    "norm_topk_prob", "routed_scaling_factor", "scoring_func", "n_group", "topk_group", "topk_method",
    "router_jitter_noise", "input_jitter_noise", "ep_size", "moe_shared_expert_overlap", "moe_router_dtype",
    "aux_loss_alpha", "seq_aux", "router_aux_loss_coef",
    # heads for other tasks, which a causal language model does not build
    "num_labels", "predict_special_tokens", "classifier_dropout_prob",
    "summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout",
    # how a program runs the same layers
    "use_cache", "cache_implementation", "gradient_checkpointing", "pretraining_tp", "use_mamba_kernels",
    # recurrent layers: how the step of each head is started and limited, and what the state is kept in
    "time_step_floor", "time_step_limit", "time_step_max", "time_step_min", "time_step_rank", "mamba_ssm_cache_dtype",
    "mamba_ssm_dtype",
})
# fmt: on

NOTED = ("unsloth_", "mlx_lm_", "mtplx_")  # what these programs note about their own work, whatever it is called
# What people who trained a model wrote down of it, whatever the rest of the name: no layer's size is called so.
_OF_TRAINING = re.compile(
    r"^(?:batch|block)_size$|learning_rate|weight_decay|warmup|epoch|(?:^|_)seed$|(?:^|_)loss(?:_|$)|^freeze_|^tune_"
    r"|^(?:(?:lr_)?decay|eval|validation|save|checkpoint|logging|log|max|total|(?:num_)?train(?:ing)?)_steps$"
    r"|^(?:gradient_)?accumulation_steps$"
    r"|dataset|(?:^|_)license$|(?:^|_)author$"
)
# However a field is called that names a token by its number, it changes no count.
NUMBERS_OF_TOKENS = ("_token_id", "_token_ids", "_token_index")

# Fields about what stands outside the decoder's own parameters: how the file packs them, and extra modules for
# multi-token prediction.
OUTSIDE_THE_DECODER = frozenset({
    "quantization_config", "quantization", "wbits", "groupsize",
    "num_nextn_predict_layers", "num_mtp_layers", "num_mtp_modules", "use_mtp",
    "mtp_transformer_layers", "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings", "mtp_layers_block_type",
    "compression_config", "sparsity_config", "quantization_bit",
    "mtp_hybrid_override_pattern", "index_share_for_mtp_iteration", "mtp_loss_scaling_factor", "mtp_share_layers",
})  # fmt: skip

# Fields that are understood with one value only; the other would build layers that are not described here.
ONLY_VALUE: dict[str, Any] = {
    "attention_bias": False,
    "mlp_bias": False,
    "is_encoder_decoder": False,
    "add_cross_attention": False,
    "do_layer_norm_before": True,
    "_remove_final_layer_norm": False,
    "layer_norm_elementwise_affine": True,
    "tie_encoder_decoder": False,
    "pruned_heads": {},
    "cross_attention_hidden_size": None,
}


def _under_own_names(config: Mapping[str, Any], model_type: str) -> Mapping[str, Any]:
    """The config with each field under the name that its class gives it, where it has only a second one."""
    moved = {
        other: own
        for other, own in second_names(model_type).items()
        if other in config and (own not in config or config[own] == config[other])
    }
    return {name: value for name, value in config.items() if name not in moved} | {
        own: config[other] for other, own in moved.items()
    }


def may_build(value: object) -> bool:
    """Whether a field that nobody knows could be a size or a switch of a layer: no word is, no number that is not
    whole, and nothing that is off.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value >= 1
    if isinstance(value, float):
        return value >= 1 and value.is_integer()
    return bool(value) and not isinstance(value, str)


LARGEST = 1_000_000_000_000  # of any size: a hidden width, a vocabulary, a context


class Fields:
    """One config's fields, each marked as it is read."""

    def __init__(self, config: Mapping[str, Any], model_type: str) -> None:
        self.config = _under_own_names(config, model_type)
        self.model_type = model_type
        self.defaults = class_defaults(model_type)
        self.seen = {"model_type", "architectures"}
        self.assumed: dict[str, int] = {}  # sizes that the file leaves to its class
        self.words: tuple[str, ...] = ()  # fields that nobody knows and that cannot be a size or a switch that is on

    def has(self, name: str) -> bool:
        """Whether the config states the field or its class has a default for it."""
        return name in self.config or name in self.defaults

    def get(self, name: str) -> Any:
        """The field, or its class default; refused by name when it has neither."""
        self.seen.add(name)
        if name in self.config:
            return self.config[name]
        if name not in self.defaults:
            raise ValueError(f"{name!r} is missing; a {self.model_type} config needs it")
        if type(self.defaults[name]) is int:
            self.assumed[name] = self.defaults[name]
        return self.defaults[name]

    def count(self, name: str, *, at_least: int = 1) -> int:
        """The field as a whole number."""
        value = self.get(name)
        if value is None and name not in self.config:
            raise ValueError(f"{name!r} is missing; a {self.model_type} config needs it")
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # 4096.0, as YAML and some exporters write it
        checks.count(at_least=at_least, **{name: value})
        if value > LARGEST:
            raise ValueError(f"{name}={value:.0e} is larger than in any model; it must be at most {LARGEST:.0e}")
        return int(value)

    def count_or_none(self, name: str) -> int | None:
        """The field as a whole number, or None where it says null."""
        return None if self.get(name) is None else self.count(name)

    def count_either(self, name: str, also: str) -> int:
        """A whole number that files keep under one of two names; both may stand there if they agree."""
        if name not in self.config and (also in self.config or name not in self.defaults):
            return self.count(also if self.has(also) else name)
        value = self.count(name)
        self.must_equal(also, value, f"it is a second name of {name}")
        return value

    def list_or_none(self, name: str) -> list[Any] | None:
        """The field as a list, or None where it says null."""
        value = self.get(name)
        if value is not None and not isinstance(value, list | tuple):
            raise ValueError(f"{name}={checks.shortened(value)} must be a list")
        return None if value is None else list(value)

    def layers_or_none(self, name: str) -> list[int] | None:
        """The field as a list of layers' numbers, or None where it says null."""
        listed = self.list_or_none(name)
        for layer in listed or ():
            checks.count(at_least=0, **{name: layer})
        return listed

    def flag(self, name: str) -> bool:
        """The field as true or false."""
        value = self.get(name)
        if value is None:  # null says nothing
            value = self.defaults.get(name)
        if not isinstance(value, bool):
            raise ValueError(f"{name}={checks.shortened(value)} must be true or false")
        return value

    def must_equal(self, name: str, expected: object, why: str) -> None:
        """Accept a field that may be left out only with this value."""
        self.seen.add(name)
        if self.config.get(name) is not None and self.config[name] != expected:
            came = checks.shortened(self.config[name])
            raise ValueError(f"{name}={came} is not understood; only {checks.shortened(expected)} is ({why})")

    def refuse_unread(self) -> None:
        """Refuse the first field that was neither read nor is known to change no count."""
        for name, only in ONLY_VALUE.items():
            if name not in self.seen:
                self.must_equal(name, only, "the other value builds other layers")
        stated = {name for name, value in self.config.items() if value is not None and not name.startswith("_")}
        unknown = sorted(
            name
            for name in stated - self.seen - CHANGES_NO_COUNT - OUTSIDE_THE_DECODER
            if not name.endswith(NUMBERS_OF_TOKENS) and not name.startswith(NOTED) and not _OF_TRAINING.search(name)
        )
        self.words = tuple(name for name in unknown if not may_build(self.config[name]))
        unknown = [name for name in unknown if name not in self.words]
        if unknown:
            raise ValueError(
                f"{unknown[0]!r} is a field that {self.model_type} configs are not known to have; it may change a"
                " count: remove it if it changes none"
            )

    def noted(self) -> tuple[str, ...]:
        """What was passed over, in words."""
        if not self.words:
            return ()
        return (f"not read, as {self.model_type} configs are not known to have it: {', '.join(self.words)}",)
