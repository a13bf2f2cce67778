"""`threeloops serve` asked by a form: the command's own answer, told in the form's words."""

import argparse
import json

import pytest

from threeloops.cli import main
from threeloops.commands.serve.asked import COUNTS
from threeloops.commands.serve.on_page import answered, in_page_words
from threeloops.commands.serve.options import add_serve_flags
from threeloops.models import catalogue
from threeloops.site.serving.fields import FIELDS, LABELS
from threeloops.site.serving.page import form

CHAT = {"--model": "llama-3-8b", "--hardware": "h100-sxm5", "--prompt": "1k", "--answer": "100"}
USERS = CHAT | {"--users": "4", "--gpus": "1"}
TINY = {
    **{"model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 4096},
    **{"tie_word_embeddings": False, "architectures": ["LlamaForCausalLM"]},
}


def told(asked: dict[str, str], name: str = "", config: str = "") -> dict:
    return json.loads(answered(json.dumps(asked), name, config, lambda sentence, seconds: None))


def test_every_flag_has_a_field_and_the_first_ones_are_the_commands_defaults() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    add_serve_flags(parser)
    flags = {action.option_strings[0]: action for action in parser._actions}
    assert set(LABELS) == set(flags)
    assert len(set(LABELS.values())) == len(LABELS)
    given = {"--model", "--hardware", "--weights", "--prompt", "--answer", "--rate", "--ttft", "--tpot"}
    for field in (one for fields in FIELDS.values() for one in fields):
        action = flags[field.flag]
        if field.first and field.flag not in given:
            read = action.type(field.first) if callable(action.type) else field.first
            assert read == action.default, field
    made = form()
    assert all(f'value="{key}"' in made for key in catalogue.model_keys())


@pytest.mark.parametrize(
    "more", [{}, {"--engine": "SGLang", "--cache": "fp8", "--hit": "60%", "--price": "2.50", "--itl": "20ms"}]
)
def test_it_says_what_the_command_says(more: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    asked = USERS | more
    words = [word for both in asked.items() for word in both]
    assert main(["serve", *words, "--json"]) == 0
    there, here = json.loads(capsys.readouterr().out), told(asked)
    assert here["conclusion"] == in_page_words(there["conclusion"])
    assert dict(here["engine"]) == {name: why for name, why in there["reasons"].items() if name.endswith("'s flags")}
    assert len(here["lines"]) == len(there["results"])
    assert here["command"].split()[2:] == words
    assert not any("--" in sentence for sentence in here["assumes"])


def test_a_config_of_ones_own_is_the_model_and_no_path_of_this_machine_is_told() -> None:
    asked = {flag: value for flag, value in USERS.items() if flag != "--model"}
    found = told(asked, "my config.json", json.dumps(TINY))
    assert found["conclusion"].startswith("4 users on 1 GPU")
    assert "tmp" not in json.dumps(found)
    assert found["command"].startswith("threeloops serve --model 'my config.json' ")
    assert told(asked, "c.json", json.dumps(TINY).encode("utf-16").decode("latin-1"))["conclusion"]


WRONG_CONFIGS = {
    "no object": ("[1, 2]", "config.json"),
    "no JSON": ("{'model_type': 'llama'}", "config.json"),
    "a tokenizer": (json.dumps({"added_tokens": [], "model": {}}), "tokenizer"),
    "an unknown type": (
        json.dumps(TINY | {"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"]}),
        "model_type 'whisper' is not read",
    ),
    "no type": (json.dumps({"hidden_size": 256}), "'model_type' is missing"),
    "heads that do not divide": (json.dumps(TINY | {"num_key_value_heads": 3}), "num_key_value_heads"),
}


@pytest.mark.parametrize("wrong", WRONG_CONFIGS)
def test_a_wrong_config_is_refused_in_one_sentence_without_flags(wrong: str) -> None:
    config, words = WRONG_CONFIGS[wrong]
    refused = told({flag: USERS[flag] for flag in USERS if flag != "--model"}, "config.json", config)["refused"]
    assert words in refused.replace("model_type=", "model_type ")
    assert "--" not in refused
    assert "tmp" not in refused
    assert "\n" not in refused


WRONG_FIELDS = {
    "nothing said": {},
    "both loads": USERS | {"--rate": "50/s"},
    "a rate without a promise": CHAT | {"--rate": "50/s"},
    "a rate without its time": CHAT | {"--rate": "50", "--ttft": "500ms"},
    "a negative share": USERS | {"--hit": "-1"},
    "a share of memory": USERS | {"--share": "much"},
    "a share of memory beyond all": USERS | {"--share": "1.5"},
    "a time in bytes": USERS | {"--itl": "40GB"},
    "no number": USERS | {"--prompt": "long"},
    "both lengths": USERS | {"--lengths": "mooncake"},
    "stages without a network": USERS | {"--pp": "2"},
    "a network without stages": USERS | {"--network": "infiniband-ndr"},
    "half of the drafts": USERS | {"--draft-tokens": "3"},
    "half of the adapters": USERS | {"--adapters": "3"},
    "pools without a link": USERS | {"--prefill-tp": "1"},
    "a link without pools": USERS | {"--link": "infiniband-ndr"},
    "no link": USERS | {"--gpus": "2", "--prefill-tp": "1", "--link": "h100-sxm5"},
    "no experts": USERS | {"--tp": "1", "--ep": "3"},
    "too few GPUs": USERS | {"--dp": "8"},
    "too large": USERS | {"--model": "deepseek-v3"},
    "a promise nobody keeps": CHAT | {"--rate": "50/s", "--ttft": "1ms"},
}


@pytest.mark.parametrize("wrong", WRONG_FIELDS)
def test_what_is_wrong_is_told_by_the_names_of_the_fields(wrong: str) -> None:
    refused = told(WRONG_FIELDS[wrong])["refused"]
    assert any(f"“{label}”" in refused for label in LABELS.values()) or wrong == "too large"
    assert "--" not in refused
    assert "\n" not in refused


def test_what_counts_is_at_least_one_and_a_refusal_names_its_field() -> None:
    for flag in COUNTS:
        name = f"--{flag.replace('_', '-')}"
        for number in ("0", "-1"):
            refused = told(USERS | {name: number})["refused"]
            assert refused == f"“{LABELS[name]}” {number} must be a whole number of at least 1"
    for flag, number in (("--share", "0"), ("--share", "-1"), ("--share", "1e9"), ("--price", "0"), ("--price", "nan")):
        refused = told(USERS | {flag: number})["refused"]
        assert refused.startswith(f"“{LABELS[flag]}” ")
        assert "must lie" in refused or "must be" in refused


def test_a_file_that_lies_beside_a_config_is_named_as_it_was_given() -> None:
    asked = {flag: value for flag, value in USERS.items() if flag != "--model"}
    refused = told(asked, "tokenizer.json", json.dumps({"added_tokens": [], "model": {}}))["refused"]
    assert refused == "'tokenizer.json' is a tokenizer (tokenizer.json): give the config.json beside it"
