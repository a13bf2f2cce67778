"""Model FLOPs: what a forward pass and a training step must calculate, and what recomputation adds.
See utilisation for the share of the peak that was reached.

Three conventions decide the number and are arguments without a default: how causal attention is charged, for which
tokens the head runs, and what the backward pass computes a second time. Results carry them.

>>> from threeloops.models.catalogue import model as catalogued
>>> gpt = catalogued("gpt3-175b")
>>> step = training_flops(gpt, batch=1, sequence=2048, causal="full", recompute="none")
>>> f"{step.model / step.tokens * 300e9:.3g}"  # 300 billion tokens; 6 N D gives 3.14e+23
'3.23e+23'

Source: Narayanan et al., 2021, arXiv:2104.04473, appendix; Chowdhery et al., PaLM, 2022, arXiv:2204.02311, appendix B
"""

from dataclasses import dataclass

from threeloops import checks
from threeloops.models.architecture import Attention, DenseMlp, LatentAttention, Layer, Model, MoeMlp
from threeloops.models.forward_step import LOGITS
from threeloops.models.recurrent_layers import DeltaState, StateSpace
from threeloops.operations import kernels

# What runs a second time: nothing; the scores, inside a fused attention kernel; the core of attention (selective);
# whole layers.
RECOMPUTE = ("none", "scores", "selective", "full")


def layer_matmul_parameters(layer: Layer, *, hidden: int) -> int:
    """Weights of one layer that multiply each token: every matrix, of the experts only the top_k that a token visits
    and the router.

    Formula:  attention: hidden * head_dim * (2 * num_heads + 2 * num_kv_heads); feed-forward: 2 or 3 * hidden *
              intermediate
    Assumes:  latent attention expanded, as in training; biases, norms and short convolutions are no matrices
    Counted:  drills.parallel_layout.tensor_shares.LAYERS

    >>> from threeloops.models.catalogue import model as catalogued
    >>> layer, _ = catalogued("llama-3-8b").groups[0]
    >>> layer_matmul_parameters(layer, hidden=4096)
    218103808
    """
    checks.count(hidden=hidden)
    attention, mlp = layer.attention, layer.mlp
    if isinstance(attention, DeltaState | StateSpace):
        mixing = attention.matmul_parameters(hidden=hidden)
    else:
        mixing = _attention_parameters(layer.attending, hidden) if attention else 0
    return mixing + (_mlp_parameters(mlp, hidden) if mlp else 0)


def _attention_parameters(attention: Attention | LatentAttention, hidden: int) -> int:
    if isinstance(attention, Attention):
        return hidden * attention.parameters_per_hidden
    attention.refuse_indexer()
    a, query_dim = attention, attention.num_heads * attention.head_dim
    query = hidden * a.q_rank + a.q_rank * query_dim if a.q_rank else hidden * query_dim
    latent = hidden * (a.kv_rank + a.rope_head_dim)
    expansion = a.kv_rank * a.num_heads * (a.nope_head_dim + a.value_head_dim)
    return query + latent + expansion + a.num_heads * a.value_head_dim * hidden


def _mlp_parameters(mlp: DenseMlp | MoeMlp, hidden: int) -> int:
    if isinstance(mlp, DenseMlp):
        return mlp.num_matrices * hidden * mlp.intermediate
    shared = _mlp_parameters(mlp.shared, hidden) if mlp.shared else 0
    return (
        hidden * mlp.num_experts
        + mlp.top_k * _mlp_parameters(mlp.expert, mlp.latent or hidden)
        + 2 * hidden * (mlp.latent or 0)
        + shared
        + (hidden if mlp.shared_gate else 0)
    )


def _score_and_value_dims(attention: Attention | LatentAttention) -> tuple[int, int]:
    """Width of the two products of attention over all heads: with the keys, with the values."""
    if isinstance(attention, Attention):
        return attention.query_dim, attention.query_dim
    return attention.num_heads * attention.head_dim, attention.num_heads * attention.value_head_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardFlops:
    """Matrix-product FLOPs of one forward pass over whole sequences."""

    projections: float  # all matrices of all layers
    scores: float  # Q K^T of all layers
    values: float  # P V of all layers
    scans: float  # the recurrent layers of a hybrid model, between their projections
    head: float
    tokens: int
    causal: str
    logits: str

    @property
    def attention(self) -> float:
        """What grows with the square of the sequence."""
        return self.scores + self.values

    @property
    def total(self) -> float:
        return self.projections + self.attention + self.scans + self.head

    @property
    def per_token(self) -> float:
        return self.total / self.tokens


def forward_flops(model: Model, *, batch: int, sequence: int, causal: str, logits: str) -> ForwardFlops:
    """FLOPs of one forward pass over `batch` sequences: 2 per matrix weight and token, plus attention.

    Formula:  projections: 2 * matmul parameters * tokens;  head: 2 * hidden * vocab * tokens (or * batch with
              logits="last") scores, values: 2 * attended_pairs * num_heads * (head_dim, value_head_dim) * batch per
              layer; scans: batch * scan_flops of the recurrent layer (DeltaState, StateSpace)
    Assumes:  the input table is a look-up and costs nothing, tied or not; norms, softmax, activations and short
              convolutions are not counted
    Source:   Narayanan et al., 2021, arXiv:2104.04473, appendix; Kaplan et al., 2020, arXiv:2001.08361, section 2.1
    Measured: measure.inner_loop.flops.counted_flops
    """
    checks.count(batch=batch, sequence=sequence)
    checks.one_of(LOGITS, logits=logits)
    tokens = batch * sequence
    projections, scores, values, scans = 0.0, 0.0, 0.0, 0.0
    for layer, num_layers in model.groups:
        projections += num_layers * 2 * layer_matmul_parameters(layer, hidden=model.hidden) * tokens
        if isinstance(layer.attention, DeltaState | StateSpace):
            scans += num_layers * batch * layer.attention.scan_flops(tokens=sequence, causal=causal)
        if not isinstance(layer.attention, Attention | LatentAttention):
            continue
        window = layer.attention.window if isinstance(layer.attention, Attention) else None
        pairs = batch * kernels.attended_pairs(
            query_tokens=sequence, context_tokens=sequence, causal=causal, window=window
        )
        score_dim, value_dim = _score_and_value_dims(layer.attending)
        scores += num_layers * 2 * pairs * score_dim
        values += num_layers * 2 * pairs * value_dim
    head = 2 * model.hidden * model.vocab * (tokens if logits == "all" else batch)
    return ForwardFlops(
        projections=projections,
        scores=scores,
        values=values,
        scans=scans,
        head=head,
        tokens=tokens,
        causal=causal,
        logits=logits,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFlops:
    """FLOPs of one training step, with and without what it computes twice."""

    forward: ForwardFlops
    recomputed: float
    recompute: str

    @property
    def backward(self) -> float:
        """Two products for each one forward: the gradient of the input and the gradient of the weight (in attention,
        of both operands).
        """
        return 2 * self.forward.total

    @property
    def model(self) -> float:
        """What the mathematics needs, three times the forward pass: the numerator of MFU."""
        return self.forward.total + self.backward

    @property
    def hardware(self) -> float:
        """What the device executes: the numerator of HFU."""
        return self.model + self.recomputed

    @property
    def tokens(self) -> int:
        return self.forward.tokens


def training_flops(model: Model, *, batch: int, sequence: int, causal: str, recompute: str) -> TrainingFlops:
    """FLOPs of one training step over `batch` sequences.

    Formula:  model: 3 * forward;  hardware: model + the forward FLOPs of what is recomputed
    Assumes:  logits for every token, the head never recomputed, the optimiser's update not counted;
              recompute="full" is a framework that runs each layer's whole forward pass again; scans are part of
              that only
    Raises:   ValueError for an unknown convention, with the known ones
    Source:   Narayanan et al., 2021, arXiv:2104.04473, appendix (full); Korthikanti et al., 2022, arXiv:2205.05198,
              appendix A (selective)
    Measured: measure.inner_loop.flops.counted_flops
    """
    checks.one_of(RECOMPUTE, recompute=recompute)
    forward = forward_flops(model, batch=batch, sequence=sequence, causal=causal, logits="all")
    again = {
        "none": 0.0,
        "scores": forward.scores,
        "selective": forward.attention,
        "full": forward.projections + forward.attention + forward.scans,
    }
    return TrainingFlops(forward=forward, recomputed=again[recompute], recompute=recompute)


def early_stop_flops(model: Model, *, batch: int, sequence: int, causal: str, recompute: str, every: int = 1) -> float:
    """FLOPs of recomputation that torch's non-reentrant checkpoint leaves out: it stops as soon as the last tensor
    that the backward pass needs is there.

    Formula:  full: 2 * intermediate * hidden * tokens for the last layer of each of num_layers / every segments,
              rounded up: a product's inputs are kept, and its result is not, so nothing waits for the last one. 0
              where something behind it keeps that result: a norm (num_norms=4), the weights of routed experts, a gate
              on shared ones.  selective: 2 * attended_pairs * num_heads * value_head_dim * batch per layer (P V)
    Units:    subtract it from TrainingFlops.recomputed; every in layers per checkpoint. Early stop saves no memory
    Assumes:  the feed-forward block runs last in a layer, shared experts after routed ones, and no dropout follows
              (its mask is kept: then everything is run again); selective: attention in separate products (a fused
              kernel keeps its own output, and nothing is left out)
    Raises:   ValueError where layers differ and every is more than 1: which layer ends a segment is not known
    Source:   torch 2.13, torch/utils/checkpoint.py, set_checkpoint_early_stop
    Measured: measure.inner_loop.flops.counted_flops

    >>> from threeloops.models.catalogue import model as catalogued
    >>> llama = catalogued("llama-3-8b")
    >>> step = training_flops(llama, batch=1, sequence=8192, causal="full", recompute="full")
    >>> round(early_stop_flops(llama, batch=1, sequence=8192, causal="full", recompute="full") / step.recomputed, 3)
    0.206
    """
    checks.one_of(("none", "selective", "full"), recompute=recompute)
    checks.count(every=every)
    if every > 1 and (recompute != "full" or len(model.groups) > 1):
        raise ValueError(
            f"every={every} needs recompute='full' and equal layers; {model.name} has {len(model.groups)} kinds; try"
            " every=1"
        )
    if every > model.num_layers:
        raise ValueError(f"every={every} must be at most the model's {model.num_layers} layers")
    forward = forward_flops(model, batch=batch, sequence=sequence, causal=causal, logits="all")
    if recompute != "full":
        return forward.values if recompute == "selective" else 0.0
    ends = ((layer, -(-num_layers // every)) for layer, num_layers in model.groups)
    return sum(2.0 * _last_width(layer) * segments for layer, segments in ends) * model.hidden * forward.tokens


def _last_width(layer: Layer) -> int:
    """Rows of the matrix that a layer multiplies by last, 0 where its result is kept for the backward pass."""
    if layer.num_norms > 2:
        return 0
    mlp = layer.feeding
    if isinstance(mlp, DenseMlp):
        return mlp.intermediate
    return mlp.shared.intermediate if mlp.shared and not mlp.shared_gate else 0


def six_n_d(*, num_parameters: float, tokens: float) -> float:
    """Training FLOPs by the rule of thumb: 6 per parameter and token.

    Formula:  6 * num_parameters * tokens
    Assumes:  every parameter multiplies every token once (no look-up table, no idle experts), and attention costs
              nothing: see SixNCorrections
    Source:   Kaplan et al., 2020, arXiv:2001.08361, section 2.1; Hoffmann et al., 2022, arXiv:2203.15556, appendix F
    Measured: measure.inner_loop.flops.counted_flops

    >>> f"{six_n_d(num_parameters=405e9, tokens=15.6e12):.2g}"  # Llama 3 405B
    '3.8e+25'
    """
    checks.positive(num_parameters=num_parameters, tokens=tokens)
    return 6 * num_parameters * tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class SixNCorrections:
    """From 6 FLOPs per parameter to the training FLOPs of one token, term by term."""

    six_n: float
    # negative: the input table (where it is not the head), idle experts, norms, biases multiply nothing
    idle_parameters: float
    attention: float  # with the scans of recurrent layers
    causal: str

    @property
    def total(self) -> float:
        return self.six_n + self.idle_parameters + self.attention


def six_n_corrections(model: Model, *, num_parameters: int, sequence: int, causal: str) -> SixNCorrections:
    """What 6N per token leaves out and wrongly includes, for `num_parameters` of this model as somebody counted them.

    Formula:  6 * num_parameters  -  6 * (num_parameters - matmul num_parameters)  +  3 * attention per token
    Assumes:  num_parameters may be total or active, with or without tables: the terms differ, the total does not
    Counted:  tests.models.test_model_flops.test_corrections_lead_from_any_count_of_parameters_to_the_same_total
    """
    checks.count(num_parameters=num_parameters)
    forward = forward_flops(model, batch=1, sequence=sequence, causal=causal, logits="all")
    working = 3 * (forward.projections + forward.head) / forward.tokens
    six_n = 6 * num_parameters
    return SixNCorrections(
        six_n=six_n,
        idle_parameters=working - six_n,
        attention=3 * (forward.attention + forward.scans) / forward.tokens,
        causal=causal,
    )
