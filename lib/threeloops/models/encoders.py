"""Encoders: parameters and forward FLOPs of BERT and of ViT, whose tokens all see one another.

Between input and output both are the same stack of layers. BERT's input is three tables (words, positions, token
types) and a norm; ViT's is one matrix over patches, a learned class token and a position for each token. Both may end
in a pooler, a layer over the first token alone; ViT usually in a classifier.

>>> bert_parameters(BERT_BASE).total, vit_parameters(VIT_B_16).total
(109482240, 86567656)

Source: Devlin et al., BERT, 2018, arXiv:1810.04805, section 3; Dosovitskiy et al., ViT, 2020, arXiv:2010.11929,
        section 3.1
"""

from dataclasses import dataclass

from threeloops import checks
from threeloops.models.architecture import Attention, DenseMlp, Layer
from threeloops.models.model_flops import layer_matmul_parameters
from threeloops.models.parameters import layer_parameters
from threeloops.operations import kernels


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderStack:
    """Equal encoder layers: attention and a feed-forward block of two matrices, biases everywhere, two LayerNorms
    (before or after: equally many).
    """

    hidden: int
    num_layers: int
    num_heads: int
    intermediate: int

    def __post_init__(self) -> None:
        checks.count(
            hidden=self.hidden, num_layers=self.num_layers, num_heads=self.num_heads, intermediate=self.intermediate
        )
        checks.divides(part="num_heads", part_value=self.num_heads, whole="hidden", whole_value=self.hidden)

    @property
    def layer(self) -> Layer:
        head_dim = self.hidden // self.num_heads
        return Layer(
            attention=Attention(
                num_heads=self.num_heads,
                num_kv_heads=self.num_heads,
                head_dim=head_dim,
                qkv_bias=True,
                output_bias=True,
            ),
            mlp=DenseMlp(intermediate=self.intermediate, gated=False, activation="gelu", bias=True),
            norm="layernorm",
            num_norms=2,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bert:
    """A text encoder, up to its pooler; heads for a task come on top."""

    stack: EncoderStack
    vocab: int
    positions: int  # the longest sequence
    token_types: int  # 2: first or second sentence
    pooler: bool

    def __post_init__(self) -> None:
        checks.count(vocab=self.vocab, positions=self.positions, token_types=self.token_types)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vit:
    """An image encoder over square patches."""

    stack: EncoderStack
    image_height: int
    image_width: int
    patch: int
    channels: int
    classes: int  # outputs of the classifier; 0: there is none
    pooler: bool

    def __post_init__(self) -> None:
        checks.count(
            image_height=self.image_height, image_width=self.image_width, patch=self.patch, channels=self.channels
        )
        checks.count(at_least=0, classes=self.classes)
        checks.divides(part="patch", part_value=self.patch, whole="image_height", whole_value=self.image_height)
        checks.divides(part="patch", part_value=self.patch, whole="image_width", whole_value=self.image_width)

    @property
    def num_patches(self) -> int:
        return (self.image_height // self.patch) * (self.image_width // self.patch)

    @property
    def tokens(self) -> int:
        """Patches and the class token."""
        return self.num_patches + 1

    @property
    def patch_elements(self) -> int:
        """Numbers in a patch, over all channels: what one column of the patch matrix multiplies."""
        return self.channels * self.patch**2


BERT_BASE = Bert(
    stack=EncoderStack(hidden=768, num_layers=12, num_heads=12, intermediate=3072),
    vocab=30522,
    positions=512,
    token_types=2,
    pooler=True,
)
BERT_LARGE = Bert(
    stack=EncoderStack(hidden=1024, num_layers=24, num_heads=16, intermediate=4096),
    vocab=30522,
    positions=512,
    token_types=2,
    pooler=True,
)
VIT_B_16 = Vit(
    stack=BERT_BASE.stack, image_height=224, image_width=224, patch=16, channels=3, classes=1000, pooler=False
)
VIT_L_16 = Vit(
    stack=BERT_LARGE.stack, image_height=224, image_width=224, patch=16, channels=3, classes=1000, pooler=False
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BertParameters:
    """Parameters of a BERT by where they stand."""

    words: int
    positions: int
    token_types: int
    embedding_norm: int
    layers: int
    pooler: int

    @property
    def total(self) -> int:
        return self.words + self.positions + self.token_types + self.embedding_norm + self.layers + self.pooler


@dataclass(frozen=True, slots=True, kw_only=True)
class VitParameters:
    """Parameters of a ViT by where they stand."""

    patches: int
    class_token: int
    positions: int
    layers: int
    final_norm: int
    pooler: int
    classifier: int

    @property
    def total(self) -> int:
        return (
            self.patches
            + self.class_token
            + self.positions
            + self.layers
            + self.final_norm
            + self.pooler
            + self.classifier
        )


def bert_parameters(bert: Bert) -> BertParameters:
    """Parameters of a BERT up to its pooler.

    Formula:  hidden * (vocab + positions + token_types) + 2 * hidden + num_layers * layer + hidden * (hidden + 1) for
              the pooler layer: 4 * hidden * (hidden + 1) + 2 * hidden * intermediate + intermediate + hidden + 4 *
              hidden
    Assumes:  LayerNorms with weight and bias, each layer's after its sub-blocks, so none at the end; the table as
              output of pre-training is not counted
    Source:   Devlin et al., BERT, 2018, arXiv:1810.04805, section 3; transformers, BertModel
    Measured: tests.models.test_encoders.real_bert

    >>> parameters = bert_parameters(BERT_LARGE)
    >>> parameters.words, parameters.total
    (31254528, 335141888)
    """
    hidden = bert.stack.hidden
    return BertParameters(
        words=bert.vocab * hidden,
        positions=bert.positions * hidden,
        token_types=bert.token_types * hidden,
        embedding_norm=2 * hidden,
        layers=_stack_parameters(bert.stack),
        pooler=bert.pooler * (hidden**2 + hidden),
    )


def vit_parameters(vit: Vit) -> VitParameters:
    """Parameters of a ViT with what it ends in.

    Formula:  hidden * (channels * patch^2 + 1) + hidden + hidden * (patches + 1) + num_layers * layer + 2 * hidden, a
              pooler of hidden * (hidden + 1), a classifier of classes * (hidden + 1)
    Assumes:  a layer as in bert_parameters, its LayerNorms before the sub-blocks and therefore one more at the end;
              learned positions
    Source:   Dosovitskiy et al., ViT, 2020, arXiv:2010.11929, section 3.1; transformers, ViTModel and
              ViTForImageClassification
    Measured: tests.models.test_encoders.real_vit

    >>> vit_parameters(VIT_L_16).total
    304326632
    """
    hidden = vit.stack.hidden
    return VitParameters(
        patches=hidden * (vit.patch_elements + 1),
        class_token=hidden,
        positions=vit.tokens * hidden,
        layers=_stack_parameters(vit.stack),
        final_norm=2 * hidden,
        pooler=vit.pooler * (hidden**2 + hidden),
        classifier=vit.classes * (hidden + 1),
    )


def _stack_parameters(stack: EncoderStack) -> int:
    return stack.num_layers * layer_parameters(stack.layer, hidden=stack.hidden).total


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderFlops:
    """Matrix-product FLOPs of one forward pass."""

    patches: int  # 0 in BERT, whose input is looked up
    projections: int  # all matrices of all layers
    attention: float  # Q K^T and P V: what grows with the square of the tokens
    pooler: int
    classifier: int
    tokens: int  # of the whole batch

    @property
    def total(self) -> float:
        return self.patches + self.projections + self.attention + self.pooler + self.classifier


def bert_forward_flops(bert: Bert, *, batch: int, sequence: int) -> EncoderFlops:
    """FLOPs of one forward pass over `batch` sequences.

    Formula:  2 * batch * (sequence * num_layers * (4 * hidden^2 + 2 * hidden * intermediate) + num_layers * 2 *
              sequence^2 * hidden + hidden^2 for the pooler)
    Assumes:  every token attends to every token, padding included; tables are looked up; norms, softmax, biases and
              activations are not counted
    Raises:   ValueError for a sequence longer than the table of positions
    Source:   Narayanan et al., 2021, arXiv:2104.04473, appendix (a layer's products)
    Measured: measure.inner_loop.flops.counted_flops

    >>> f"{bert_forward_flops(BERT_BASE, batch=1, sequence=128).total:.4g}"
    '2.235e+10'
    """
    checks.count(batch=batch, sequence=sequence)
    if sequence > bert.positions:
        raise ValueError(f"sequence={sequence} must not exceed positions={bert.positions}: later tokens have none")
    return EncoderFlops(
        patches=0,
        projections=_projection_flops(bert.stack, tokens=batch * sequence),
        attention=_attention_flops(bert.stack, batch=batch, tokens=sequence),
        pooler=bert.pooler * 2 * batch * bert.stack.hidden**2,
        classifier=0,
        tokens=batch * sequence,
    )


def vit_forward_flops(vit: Vit, *, batch: int) -> EncoderFlops:
    """FLOPs of one forward pass over `batch` images.

    Formula:  2 * batch * (patches * channels * patch^2 * hidden + layers as in bert_forward_flops with patches + 1
              tokens + hidden^2 for a pooler + hidden * classes)
    Units:    2 per multiply-add; tables of vision models mostly print multiply-adds and call them FLOPs: half of this
    Assumes:  the class token goes through every layer and is alone in pooler and classifier; norms, softmax, biases
              and activations are not counted
    Source:   Dosovitskiy et al., ViT, 2020, arXiv:2010.11929, section 3.1
    Measured: measure.inner_loop.flops.counted_flops

    >>> f"{vit_forward_flops(VIT_B_16, batch=1).total / 2e9:.3f} billion multiply-adds"
    '17.564 billion multiply-adds'
    """
    checks.count(batch=batch)
    hidden = vit.stack.hidden
    return EncoderFlops(
        patches=2 * batch * vit.num_patches * vit.patch_elements * hidden,
        projections=_projection_flops(vit.stack, tokens=batch * vit.tokens),
        attention=_attention_flops(vit.stack, batch=batch, tokens=vit.tokens),
        pooler=vit.pooler * 2 * batch * hidden**2,
        classifier=2 * batch * hidden * vit.classes,
        tokens=batch * vit.tokens,
    )


def _projection_flops(stack: EncoderStack, *, tokens: int) -> int:
    return 2 * tokens * stack.num_layers * layer_matmul_parameters(stack.layer, hidden=stack.hidden)


def _attention_flops(stack: EncoderStack, *, batch: int, tokens: int) -> float:
    pairs = kernels.attended_pairs(query_tokens=tokens, context_tokens=tokens, causal="full")
    return stack.num_layers * batch * 2 * pairs * 2 * stack.hidden
