"""Parameters by what they are: of one layer, and of a whole model under the conventions in use.

>>> weights = {"embedding": 6, "further_tables": 0, "head": 0, "matrices": 4, "experts": 0, "others": 2}
>>> parameters_as_counted(CountedWeights(how="", **weights)).non_embedding
6
"""

from collections.abc import Callable
from dataclasses import dataclass

from threeloops.models.layers.counted import CountedWeights


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerParameters:
    """Parameters of one transformer block."""

    attention: int  # projections, their biases, sinks; or what a recurrent layer has in place of them
    dense_mlp: int  # a feed-forward block that every token runs; 0 in a layer with experts
    shared_experts: int  # experts that every token runs, their gate and the way to and from narrower experts included
    router: int
    routed_experts: int  # all of them
    active_routed_experts: int  # the top_k that one token runs
    norms: int  # on the way into and out of the sub-blocks, and inside attention
    # values stored beside the parameters that no gradient trains: the routing correction biases; in no total
    buffers: int
    beside: int = 0  # what stands beside attention and MLP

    @property
    def mlp(self) -> int:
        """The feed-forward side: dense, shared, routed, and the router."""
        return self.dense_mlp + self.shared_experts + self.router + self.routed_experts

    @property
    def total(self) -> int:
        return self.attention + self.mlp + self.norms + self.beside

    @property
    def active(self) -> int:
        """What one token runs: the total without the routed experts that it does not visit."""
        return self.total - self.routed_experts + self.active_routed_experts


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelParameters:
    """Parameters of a whole model. The properties are the conventions in use; say which one you mean."""

    embedding: int  # the input table, vocab rows of width hidden
    positions: int  # a learned position table; 0 with rotary positions
    head: int  # the output matrix, 0 when it is the input table (tied); and its bias
    embedding_norm: int  # behind the input table, where there is one
    final_norm: int
    layers: tuple[tuple[LayerParameters, int], ...]  # equal layers, with how many there are
    head_matrix: int  # size of the matrix that makes the logits, whether or not it is the input table
    further_tables: int = 0  # looked up as the input table is
    outside: int = 0  # further projections and norms outside the layers

    def _over_layers(self, item: Callable[[LayerParameters], int]) -> int:
        return sum(item(layer) * num_layers for layer, num_layers in self.layers)

    @property
    def attention(self) -> int:
        return self._over_layers(lambda layer: layer.attention)

    @property
    def mlp(self) -> int:
        return self._over_layers(lambda layer: layer.mlp)

    @property
    def routed_experts(self) -> int:
        return self._over_layers(lambda layer: layer.routed_experts)

    @property
    def norms(self) -> int:
        return self._over_layers(lambda layer: layer.norms) + self.embedding_norm + self.final_norm

    @property
    def buffers(self) -> int:
        return self._over_layers(lambda layer: layer.buffers)

    @property
    def total(self) -> int:
        """Everything that is stored, a tied table once: what fills memory."""
        return self.embedding + self.further_tables + self.positions + self.head + self.non_embedding

    @property
    def active(self) -> int:
        """The total without the routed experts that a token does not visit; the whole input table is in it."""
        return self.total - self.non_embedding + self.active_non_embedding

    @property
    def non_embedding(self) -> int:
        """Without input table, learned positions and output head: the N of Kaplan et al., 2020, arXiv:2001.08361,
        section 2.1.
        """
        return self._over_layers(lambda layer: layer.total) + self.embedding_norm + self.final_norm + self.outside

    @property
    def active_non_embedding(self) -> int:
        """What one token runs between the input table and the output head."""
        return self._over_layers(lambda layer: layer.active) + self.embedding_norm + self.final_norm + self.outside

    @property
    def active_with_head(self) -> int:
        """What one token computes with: active, the logits' matrix in (tied or not), the tables that are only looked
        up out.
        """
        return self.active_non_embedding + self.head_matrix


def parameters_as_counted(counted: CountedWeights) -> ModelParameters:
    """What a class was seen to hold: one entry for all layers, whose MLP stands for every matrix."""
    layers = LayerParameters(
        attention=0,
        dense_mlp=counted.matrices,
        shared_experts=0,
        router=0,
        routed_experts=counted.experts,
        active_routed_experts=counted.experts,
        norms=counted.others,
        buffers=0,
    )
    return ModelParameters(
        embedding=counted.embedding,
        positions=0,
        head=counted.head,
        embedding_norm=0,
        final_norm=0,
        layers=((layers, 1),),
        head_matrix=counted.head or counted.embedding,
        further_tables=counted.further_tables,
    )
