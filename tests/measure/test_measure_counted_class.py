"""Models that no reader describes, counted on their class: against the readers, against caches that real tensors fill,
against what publishers print.
"""

import json

import pytest
import torch
from tests.models.small_configs import small

from threeloops.cli import main
from threeloops.commands.measured import by_class
from threeloops.measure.models import class_steps, counted_class
from threeloops.measure.models.counted_class import counted_model
from threeloops.measure.product_loop import kv_cache as weigh
from threeloops.models.hf_config import from_hf_config
from threeloops.models.parameters import model_parameters
from threeloops.product_loop import kv_cache

# Every kind of layer that a class keeps something with: windows in some layers, sinks, latents, an index key, states in
# place of attention and beside it, layers that keep nothing, a table of positions, heads that are the table.
READ = (
    "llama", "gemma3_text", "gpt_oss", "deepseek_v3", "glm_moe_dsa", "minimax_m3_vl_text", "falcon_h1", "jamba",
    "qwen3_next", "mamba2", "gemma3n_text", "gpt2", "mixtral", "lfm2",
)  # fmt: skip


@pytest.mark.parametrize("model_type", READ)
def test_a_type_that_is_read_is_counted_alike_on_its_class(model_type):
    read, counted = from_hf_config(small(model_type)), counted_model(small(model_type), name="counted")
    assert model_parameters(counted).total == model_parameters(read).total == counted.counted.total
    assert counted.tied_head == read.tied_head
    for tokens in (1, 4, 8, 50, 1000):
        sizes = [kv_cache.request_bytes(one, tokens=tokens, bytes_per_element=2) for one in (counted, read)]
        assert sizes[0] == sizes[1], tokens


SMALL = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4}
UNREAD = {
    "apertus": SMALL | {"num_hidden_layers": 3, "num_key_value_heads": 2},
    "afmoe": SMALL | {
        "num_hidden_layers": 4, "num_key_value_heads": 2, "head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2,
        "moe_intermediate_size": 16, "num_dense_layers": 1, "sliding_window": 8, "global_attn_every_n_layers": 2,
    },
    "olmo_hybrid": SMALL | {"num_hidden_layers": 4, "num_key_value_heads": 2, "pad_token_id": 0},
    "granitemoeshared": SMALL | {
        "num_hidden_layers": 2, "num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2,
        "shared_intermediate_size": 16,
    },
}  # fmt: skip


@pytest.mark.parametrize("model_type", UNREAD)
def test_an_unread_type_keeps_what_real_tensors_fill(model_type):
    content = {"model_type": model_type, **UNREAD[model_type]}
    counted = counted_model(content, name=model_type)
    real = weigh.small_model(content, dtype=torch.bfloat16)
    real.set_experts_implementation("eager")
    assert counted.counted.total == sum(parameter.numel() for parameter in real.parameters())
    cache = weigh.filled_cache(real, batch=1, prompt_tokens=29, decode_tokens=2)
    kept = weigh.cache_weight(cache).tensor_bytes + weigh.state_bytes(cache)
    states = kv_cache.states_bytes(counted)
    attended = kv_cache.request_bytes(counted, tokens=31, bytes_per_element=2, moment="between_steps") - states
    assert weigh.cache_weight(cache).tensor_bytes == attended
    assert (kept > attended) == (states > 0)


def test_a_window_is_the_configs_and_limits_the_layers_that_it_limits():
    counted = counted_model({"model_type": "afmoe", **UNREAD["afmoe"]}, name="afmoe")
    windows = {layer.attention.window: number for layer, number in counted.groups}
    assert windows == {8: 2, None: 2}
    assert "sliding_window 8 limits 2 layers" in counted.counted.how


# What publishers print of their models, and the fields of their config.json that say how large they are.
PUBLISHED = {
    # Lin et al., 2021, arXiv:2112.10668, table 1; the model card: "with 564 million parameters"
    "xglm": ({"d_model": 1024, "ffn_dim": 4096, "num_layers": 24, "attention_heads": 16, "vocab_size": 256008}, 564e6),
    # MiniMax, 2025, arXiv:2501.08313: 456 billion in all
    "minimax": (
        {
            "hidden_size": 6144, "intermediate_size": 9216, "num_hidden_layers": 80, "num_attention_heads": 64,
            "num_key_value_heads": 8, "head_dim": 128, "num_local_experts": 32, "num_experts_per_tok": 2,
            "vocab_size": 200064, "layer_types": (["linear_attention"] * 7 + ["full_attention"]) * 10,
        },
        456e9,
    ),
    # Karpathy, nanochat, 2025, speedrun.sh: "the d20 model is 561M parameters"
    "nanochat": (
        {
            "hidden_size": 1280, "intermediate_size": 5120, "num_hidden_layers": 20, "num_attention_heads": 10,
            "num_key_value_heads": 10, "vocab_size": 65536,
        },
        561e6,
    ),
}  # fmt: skip


@pytest.mark.parametrize("model_type", PUBLISHED)
def test_parameters_are_those_that_publishers_print(model_type):
    fields, printed_number = PUBLISHED[model_type]
    with class_steps.quietly():
        model = class_steps.built(class_steps.class_config({"model_type": model_type, **fields}))
    assert class_steps.held(model, how="").total == pytest.approx(printed_number, rel=0.001)


def refused(content):
    with pytest.raises(ValueError, match=r"\w") as caught:
        counted_model(content, name="it")
    return str(caught.value)


def test_what_cannot_be_counted_is_refused_in_words():
    assert "has no class for 'internlm9'" in refused({"model_type": "internlm9"})
    assert "is a decoder" in refused({"model_type": "bart"})
    assert "no language-model head" in refused({"model_type": "roberta", "architectures": ["RobertaForMaskedLM"]})
    assert "keys and values of images" in refused({"model_type": "mllama"})
    assert "returns no cache" in refused({"model_type": "openai-gpt", "n_layer": 1, "n_embd": 48, "n_head": 4})
    assert "refuses its fields" in refused({"model_type": "apertus", "hidden_size": "wide"})


UNREAD_APERTUS = {"model_type": "apertus", **UNREAD["apertus"]}


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(UNREAD_APERTUS), encoding="utf-8")
    return str(file)


def test_the_command_says_that_it_was_counted_so_and_counts_once(config, monkeypatch, capsys):
    counts = []
    monkeypatch.setattr(counted_class, "built", lambda fields: counts.append(1) or class_steps.built(fields))
    counted_class._counted.cache_clear()
    main(["kv", "--model", config, "--tokens", "100", "--cache", "bf16", "--tp", "2"])
    text = capsys.readouterr().out
    assert "counted on its class  ApertusForCausalLM of transformers" in text
    assert f"3 with 2 KV heads of {32 // 4}" in text
    assert len(counts) == 1
    main(["fit", "--model", config, "--weights", "fp8", "--hardware", "4090", "--tokens", "1k", "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["parameters"] == model_parameters(counted_model(UNREAD_APERTUS, name="it")).total
    assert len(counts) == 1


def told(capsys, words):
    """What the command says on its way out."""
    assert main(words) == 2
    return capsys.readouterr().err


def test_what_is_not_counted_of_it_says_so(config, capsys):
    for words in (
        "memory --recipe megatron --zero 1 --dp 8 --micro-batch 1 --sequence 64 --kernels fused --recompute none",
        "roofline --hardware h100-sxm --dtype bf16",
    ):
        said = told(capsys, [*words.split(), "--model", config])
        assert "counted on its class alone" in said
        assert "`threeloops kv`, `threeloops fit`" in said


def test_without_torch_the_refusal_says_what_to_install(config, monkeypatch, capsys):
    monkeypatch.setattr(by_class.importlib.util, "find_spec", lambda module: None if module == "torch" else object())
    said = told(capsys, ["kv", "--model", config, "--tokens", "100", "--cache", "bf16"])
    assert "'apertus' is not read" in said
    assert "With torch installed (pip install torch)" in said
