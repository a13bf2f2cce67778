"""BERT and ViT: parameters to the unit against transformers and against published counts, FLOPs against torch's
counter and published tables.
"""

import dataclasses
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertModel, ViTConfig, ViTForImageClassification, ViTModel

from threeloops.measure.inner_loop.flops import counted_flops
from threeloops.models import encoders
from threeloops.models.encoders import BERT_BASE, BERT_LARGE, VIT_B_16, VIT_L_16, Bert, EncoderStack, Vit
from threeloops.models.hf_config import from_hf_config
from threeloops.models.hf_encoders import encoder_from_config

torch.set_num_threads(1)

TINY = EncoderStack(hidden=24, num_layers=3, num_heads=4, intermediate=40)
TINY_BERT = Bert(stack=TINY, vocab=99, positions=20, token_types=3, pooler=True)
TINY_VIT = Vit(stack=TINY, image_height=12, image_width=20, patch=4, channels=2, classes=7, pooler=False)


def shape(stack: EncoderStack) -> dict[str, int]:
    return {
        "hidden_size": stack.hidden,
        "num_hidden_layers": stack.num_layers,
        "num_attention_heads": stack.num_heads,
        "intermediate_size": stack.intermediate,
    }


def real_bert(bert: Bert, device: str) -> BertModel:
    config = BertConfig(
        **shape(bert.stack),
        vocab_size=bert.vocab,
        max_position_embeddings=bert.positions,
        type_vocab_size=bert.token_types,
    )
    with torch.device(device):
        return BertModel(config, add_pooling_layer=bert.pooler).eval()


def real_vit(vit: Vit, device: str) -> torch.nn.Module:
    config = ViTConfig(
        **shape(vit.stack),
        image_size=(vit.image_height, vit.image_width),
        patch_size=vit.patch,
        num_channels=vit.channels,
        num_labels=vit.classes,
    )
    with torch.device(device):
        return (
            ViTForImageClassification(config) if vit.classes else ViTModel(config, add_pooling_layer=vit.pooler)
        ).eval()


def held(model: torch.nn.Module, *words: str) -> int:
    return sum(weight.numel() for name, weight in model.named_parameters() if any(word in name for word in words))


@pytest.mark.parametrize("bert", [BERT_BASE, BERT_LARGE, TINY_BERT, dataclasses.replace(BERT_BASE, pooler=False)])
def test_bert_is_transformers_bert(bert: Bert) -> None:
    real, parameters = real_bert(bert, "meta"), encoders.bert_parameters(bert)
    assert parameters.total == held(real, "")
    assert parameters.words == held(real, "word_embeddings")
    assert parameters.positions == held(real, "position_embeddings")
    assert parameters.token_types == held(real, "token_type_embeddings")
    assert parameters.embedding_norm == held(real, "embeddings.LayerNorm")
    assert parameters.layers == held(real, "encoder.layer")
    assert parameters.pooler == held(real, "pooler")


@pytest.mark.parametrize(
    "vit",
    [
        VIT_B_16,
        VIT_L_16,
        TINY_VIT,
        dataclasses.replace(VIT_B_16, classes=0, pooler=True),
        dataclasses.replace(VIT_L_16, classes=0, pooler=False),
    ],
)
def test_vit_is_transformers_vit(vit: Vit) -> None:
    real, parameters = real_vit(vit, "meta"), encoders.vit_parameters(vit)
    assert parameters.total == held(real, "")
    assert parameters.patches == held(real, "patch_embeddings")
    assert parameters.class_token == held(real, "cls_token")
    assert parameters.positions == held(real, "position_embeddings")
    assert parameters.layers == held(real, "layers.")
    assert parameters.pooler == held(real, "pooler")
    assert parameters.classifier == held(real, "classifier")


def test_published_sizes() -> None:
    # Devlin et al., 2018, arXiv:1810.04805, section 3: BERT-base 110M, BERT-large 340M "total parameters" (with the
    # pre-training head: +0.6M and +1.1M)
    assert encoders.bert_parameters(BERT_BASE).total == pytest.approx(110e6, rel=0.01)
    assert encoders.bert_parameters(BERT_LARGE).total == pytest.approx(340e6, rel=0.02)
    # torchvision's page of vit_b_16: num_params 86567656. ViT paper, arXiv:2010.11929, table 1: ViT-Base 86M,
    # ViT-Large 307M, ViT-Huge 632M
    assert encoders.vit_parameters(VIT_B_16).total == 86_567_656
    body = {"image_height": 224, "image_width": 224, "channels": 3, "classes": 0, "pooler": False}
    huge = Vit(stack=EncoderStack(hidden=1280, num_layers=32, num_heads=16, intermediate=5120), patch=14, **body)
    assert encoders.vit_parameters(huge).total == pytest.approx(632e6, rel=0.005)
    assert encoders.vit_parameters(VIT_L_16).total == pytest.approx(307e6, rel=0.01)


def test_vit_flops_as_torchvision_prints_them() -> None:
    # torchvision, models/vision_transformer.py, vit_b_16: "_ops": 17.564, billions of multiply-adds at 224
    assert round(encoders.vit_forward_flops(VIT_B_16, batch=1).total / 2e9, 3) == 17.564


@pytest.mark.parametrize(("batch", "sequence"), [(2, 11), (1, 20)])
def test_bert_flops_are_what_torch_counts(batch: int, sequence: int) -> None:
    words = torch.zeros(batch, sequence, dtype=torch.long)
    counted = counted_flops(real_bert(TINY_BERT, "cpu"), words)
    assert encoders.bert_forward_flops(TINY_BERT, batch=batch, sequence=sequence).total == counted.total


@pytest.mark.parametrize("vit", [TINY_VIT, dataclasses.replace(TINY_VIT, classes=0, pooler=True)])
def test_vit_flops_are_what_torch_counts(vit: Vit) -> None:
    counted = counted_flops(real_vit(vit, "cpu"), torch.zeros(3, vit.channels, vit.image_height, vit.image_width))
    assert encoders.vit_forward_flops(vit, batch=3).total == counted.total


def test_scaling() -> None:
    once, twice = (encoders.bert_forward_flops(BERT_BASE, batch=1, sequence=sequence) for sequence in (128, 256))
    assert (twice.projections, twice.attention, twice.pooler) == (2 * once.projections, 4 * once.attention, once.pooler)
    eight = encoders.vit_forward_flops(VIT_B_16, batch=8)
    assert eight.total == 8 * encoders.vit_forward_flops(VIT_B_16, batch=1).total
    # four times the patches of a quarter of the pixels: the patch matrix costs the same in all
    finer = dataclasses.replace(VIT_B_16, patch=8)
    assert encoders.vit_forward_flops(finer, batch=8).patches == eight.patches
    assert finer.num_patches == 4 * VIT_B_16.num_patches


def test_refusals() -> None:
    assert encoders.bert_forward_flops(TINY_BERT, batch=1, sequence=20).tokens == 20
    with pytest.raises(ValueError, match="sequence=21 must not exceed positions=20"):
        encoders.bert_forward_flops(TINY_BERT, batch=1, sequence=21)
    with pytest.raises(ValueError, match="patch=5 must divide image_height=12"):
        dataclasses.replace(TINY_VIT, patch=5)
    assert dataclasses.replace(TINY, num_heads=6).layer.attention.head_dim == 4
    with pytest.raises(ValueError, match="num_heads=5 must divide hidden=24"):
        dataclasses.replace(TINY, num_heads=5)


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "bert"},
        {"model_type": "bert", "hidden_size": 48, "num_attention_heads": 6, "intermediate_size": 70, "vocab_size": 131},
        {"model_type": "vit", "image_size": 64, "patch_size": 8, "num_hidden_layers": 3, "num_channels": 1},
    ],
)
def test_a_config_is_the_encoder_that_transformers_builds(config: dict[str, Any]) -> None:
    encoder = encoder_from_config(config)
    sizes = {name: value for name, value in config.items() if name != "model_type"}
    with torch.device("meta"):
        real = BertModel(BertConfig(**sizes)) if config["model_type"] == "bert" else ViTModel(ViTConfig(**sizes))
    counted = encoders.bert_parameters(encoder) if isinstance(encoder, Bert) else encoders.vit_parameters(encoder)
    assert counted.total == sum(weight.numel() for weight in real.parameters())
    with pytest.raises(ValueError, match=f"is an encoder, .* it has {counted.total:,} parameters, and a forward pass"):
        from_hf_config(config)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "bert", "hidden_act": "relu"}, "hidden_act='relu' is not understood; only 'gelu' is"),
        ({"model_type": "vit", "image_size": [224, 224]}, "image_size=\\[224, 224\\] must be a whole number"),
        ({"model_type": "vit", "patch_size": 15}, "patch=15 must divide image_height=224"),
        ({"model_type": "gpt2"}, "model_type='gpt2' is not known. Known: bert, vit"),
    ],
)
def test_encoder_configs_are_refused_in_a_sentence(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encoder_from_config(config)
