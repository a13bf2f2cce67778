"""The shapes of models, and the catalogue that holds them."""

import dataclasses
import tomllib
from pathlib import Path

import pytest
from tests.models.test_published_configs import CATALOGUED

from threeloops.models import catalogue
from threeloops.models.architecture import Attention, DenseMlp, LatentAttention, Layer, Model, MoeMlp
from threeloops.models.layers.indexers import Indexer


def layer(**options) -> Layer:
    parts = {
        "attention": Attention(num_heads=6, num_kv_heads=3, head_dim=5),
        "mlp": DenseMlp(intermediate=70, gated=True, activation="silu"),
        "norm": "rmsnorm",
        "num_norms": 2,
    }
    return Layer(**(parts | options))


def tiny(**options) -> Model:
    sizes = {"name": "tiny", "hidden": 20, "vocab": 31, "groups": ((layer(), 4),), "tied_head": True, "max_context": 9}
    return Model(**(sizes | options))


def test_attention_widths():
    # 6 query heads of 5 are 30 wide; 3 KV heads are 15; Q, K, V and output together 30 + 15 + 15 + 30.
    attention = layer().attention
    assert (attention.group_size, attention.query_dim, attention.kv_dim, attention.parameters_per_hidden) == (
        2,
        30,
        15,
        90,
    )


def test_latent_head_dim_is_both_parts():
    # DeepSeek-V3: 128 without position and 64 with it (arXiv:2412.19437, section 4.2).
    latent = LatentAttention(
        num_heads=128, q_rank=1536, kv_rank=512, nope_head_dim=128, rope_head_dim=64, value_head_dim=128
    )
    assert latent.head_dim == 192


def test_layers_are_listed_one_by_one():
    full, windowed = layer(), layer(attention=Attention(num_heads=6, num_kv_heads=3, head_dim=5, window=7))
    model = tiny(groups=((windowed, 5), (full, 2)))
    assert list(model.layers()) == [windowed] * 5 + [full] * 2
    assert model.num_layers == 7


def test_models_are_values():
    assert tiny() == tiny()
    assert hash(tiny()) == hash(tiny())
    with pytest.raises(dataclasses.FrozenInstanceError):
        tiny().hidden = 21


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: Attention(num_heads=6, num_kv_heads=4, head_dim=5),
            "num_kv_heads=4 must divide num_heads=6; try num_kv_heads in {1, 2, 3, 6}",
        ),
        (
            lambda: Attention(num_heads=6, num_kv_heads=3, head_dim=5, window=0),
            "window=0 must be a whole number of at least 1",
        ),
        (
            lambda: Attention(num_heads=6.0, num_kv_heads=3, head_dim=5),
            "num_heads=6.0 must be a whole number of at least 1",
        ),
        (
            lambda: LatentAttention(
                num_heads=2, q_rank=0, kv_rank=4, nope_head_dim=3, rope_head_dim=2, value_head_dim=3
            ),
            "q_rank=0 must be a whole number of at least 1",
        ),
        (
            lambda: DenseMlp(intermediate=0, gated=True, activation="silu"),
            "intermediate=0 must be a whole number of at least 1",
        ),
        (lambda: MoeMlp(num_experts=4, top_k=5, expert=layer().mlp), "top_k=5 must not exceed num_experts=4"),
        (lambda: layer(norm="batchnorm"), "norm='batchnorm' is not known"),
        (lambda: tiny(groups=()), "tiny has no layers"),
        (lambda: tiny(groups=((layer(), 0),)), "num_layers=0 must be a whole number of at least 1"),
        (lambda: tiny(learned_positions=-1), "learned_positions=-1 must be a whole number of at least 0"),
    ],
)
def test_refusals(build, message):
    with pytest.raises(ValueError, match=r"^" + message.replace("{", r"\{").replace("}", r"\}").replace("(", r"\(")):
        build()


def test_the_nearest_valid_neighbours_are_accepted():
    assert Attention(num_heads=6, num_kv_heads=6, head_dim=5, window=1).group_size == 1
    assert MoeMlp(num_experts=4, top_k=4, expert=layer().mlp).top_k == 4
    assert (
        LatentAttention(num_heads=2, q_rank=None, kv_rank=4, nope_head_dim=3, rope_head_dim=2, value_head_dim=3).q_rank
        is None
    )


# The catalogue

OWED = """gpt2 gpt2-medium gpt2-large gpt2-xl gpt3-175b opt-13b llama-2-7b llama-2-13b llama-2-70b llama-3-8b llama-3-70b llama-3-405b mistral-7b
mixtral-8x7b mixtral-8x22b gemma-2-9b gemma-2-27b gemma-3-27b qwen2.5-7b qwen2.5-72b qwen3-32b qwen3-235b-a22b deepseek-v2 deepseek-v3 gpt-oss-20b
gpt-oss-120b phi-3-mini"""  # noqa: E501


def test_the_catalogue_holds_what_the_book_uses():
    assert set(OWED.split()) <= set(catalogue.model_keys())
    assert {"resnet-50", "efficientnet-b4"} <= set(catalogue.convnet_keys())


@pytest.mark.parametrize("key", catalogue.model_keys())
def test_every_model_is_sourced_and_reads(key):
    entry = catalogue.model_entry(key)
    assert entry.url.startswith(("https://", "http://"))
    assert 2015 <= entry.year <= entry.checked.year
    held = entry.published or entry.same_as or key in CATALOGUED.values()  # the last by its published config.json
    assert held, "every model carries a printed count, or its shape is held by another row's or by a published file"
    assert catalogue.model(key).name == key


def test_hybrids_are_refused_where_every_layer_has_to_attend():
    for key, message in (
        ("qwen3-next-80b-a3b", "has a recurrent state in place of attention; training, caches and FLOPs are counted"),
        ("nemotron-h-56b", "has a recurrent state in place of attention"),
    ):
        with pytest.raises(ValueError, match=message):
            catalogue.model(key).refuse_hybrid()
    chosen = Indexer(num_heads=3, head_dim=11, top_k=9)
    latent = LatentAttention(
        num_heads=6, q_rank=22, kv_rank=14, nope_head_dim=10, rope_head_dim=4, value_head_dim=9, indexer=chosen
    )
    with pytest.raises(ValueError, match="an indexer chooses 9 tokens for each query of this model"):
        tiny(groups=((layer(attention=latent), 4),)).refuse_hybrid()
    with pytest.raises(ValueError, match="a layer of this hybrid model has no MLP"):
        tiny(groups=((layer(mlp=None), 4),)).refuse_hybrid()
    with pytest.raises(ValueError, match="a layer needs attention, an MLP, or both"):
        layer(attention=None, mlp=None)
    tiny().refuse_hybrid()


STEP = {"batch": 1, "sequence": 9, "causal": "full", "logits": "all"}


def test_unknown_keys_name_the_near_ones():
    with pytest.raises(ValueError, match=r"^model='llama-3-8' is not known; did you mean 'llama-3-8b'"):
        catalogue.model("llama-3-8")
    with pytest.raises(ValueError, match=r"^model='resnt-50' is not known; did you mean 'resnet-50'"):
        catalogue.convnet("resnt-50", height=224, width=224)


OVERLAY = """
[sources.mine]
title = "my notebook"
url = "https://example.org/mine"
checked = 2026-11-21

[models.mine]
name = "Mine"
vendor = "me"
year = 2026
source = "mine"
[models.mine.config]
model_type = "gpt2"
n_embd = 48
n_layer = 3
n_head = 4
n_positions = 64
vocab_size = 100
"""


def overlay(folder: Path, text: str) -> Path:
    file = folder / "mine.toml"
    file.write_text(text)
    return file


def test_an_overlay_adds_and_overrides(tmp_path, monkeypatch):
    file = overlay(tmp_path, OVERLAY + OVERLAY.split("\n\n")[1].replace("models.mine", "models.gpt2"))
    assert catalogue.model("mine", overlay=file).hidden == 48
    assert catalogue.model("gpt2", overlay=file).hidden == 48
    assert catalogue.model("gpt2").hidden == 768
    assert "mine" not in catalogue.model_keys()
    monkeypatch.setenv("THREELOOPS_CATALOG", str(file))
    assert catalogue.model("mine").num_layers == 3
    assert catalogue.model_keys()[-1] == "mine"


def test_a_row_may_be_the_same_as_another_but_for_its_own_fields(tmp_path):
    file = overlay(tmp_path, OVERLAY.split("[models.mine.config]")[0] + 'same_as = "gpt2-xl"\nalso = ["Our own"]\n')
    mine, theirs = catalogue.model("our own", overlay=file), catalogue.model("gpt2-xl")
    assert (mine.name, mine.groups, mine.vocab) == ("mine", theirs.groups, theirs.vocab)
    entry = catalogue.model_entry("mine", overlay=file)
    assert (entry.same_as, entry.config) == ("gpt2-xl", catalogue.model_entry("gpt2-xl").config)
    shorter = overlay(tmp_path, file.read_text() + "[models.mine.config]\nn_positions = 64\n")
    assert catalogue.model("mine", overlay=shorter).max_context == 64


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('source = "mine"', 'source = "yours"', r"mine: source='yours' is not known"),
        ('source = "mine"\n', "", r"mine: 'source' is missing; a model needs name, vendor, year, source and config"),
        ('vendor = "me"', 'vendor = "me"\ncolour = "red"', r"mine: unknown field 'colour'; known: name, vendor"),
        ('title = "my notebook"\n', "", r"mine: its source lacks 'title'"),
        ('vendor = "me"', 'vendor = "me"\nalso = "our"', r"mine: also='our' must be a list, like \['our'\]"),
        ('vendor = "me"', 'vendor = "me"\nsame_as = "gpt3"', r"mine: same_as='gpt3' is not known; did you mean 'gpt3-"),
        ('vendor = "me"', 'vendor = "me"\nsame_as = "mine"', r"mine: same_as='mine' leads back to itself; name a"),
        ("year = 2026", "year = 2026.5", r"mine: year=2026.5 must be a whole number"),
        ("n_head = 4", "n_head = 5", r"mine: n_head=5 must divide n_embd=48; try n_head in"),
        (
            "[models.mine.config]",
            "[models.mine.published]\nweight = {value = 1}\n[models.mine.config]",
            r"mine: published='weight' is not known",
        ),
        (
            "[models.mine.config]",
            "[models.mine.published]\ntotal = {value = 1}\n[models.mine.config]",
            r"mine: total: 'printed' is missing",
        ),
    ],
)
def test_an_overlay_is_held_to_the_same_checks(tmp_path, before, after, message):
    assert before in OVERLAY
    file = overlay(tmp_path, OVERLAY.replace(before, after))
    tomllib.loads(file.read_text())
    with pytest.raises(ValueError, match=r"^" + message):
        catalogue.model("mine", overlay=file)


def test_an_overlay_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"cannot be read \(No such file or directory\)"):
        catalogue.model("gpt2", overlay=tmp_path / "absent.toml")
