"""Indexers: small second attentions that choose what a layer's attention reads; their keys are cached, too.

>>> Indexer(num_heads=64, head_dim=128, top_k=2048).head_dim
128
"""

from dataclasses import dataclass

from threeloops import checks


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexer:
    """Chooses the tokens that a latent attention reads, or the entries of a compressed one.

    Source: DeepSeek-AI, DeepSeek-V3.2, 2025, section 2.1; transformers 5.23, models/deepseek_v32
    """

    num_heads: int
    head_dim: int  # also the width of its one cached key per token
    top_k: int  # tokens, or entries, that it chooses for each query

    def __post_init__(self) -> None:
        checks.count(num_heads=self.num_heads, head_dim=self.head_dim, top_k=self.top_k)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockIndexer:
    """The small attention that chooses blocks of tokens; one key per token is cached beside keys and values.

    Source: transformers 5.23, models/minimax_m3_vl/modeling_minimax_m3_vl.py, MiniMaxM3VLIndexer
    """

    num_heads: int
    head_dim: int  # also the width of its one cached key per token
    block: int  # tokens that are chosen together
    top_k: int  # blocks that it chooses for each query

    def __post_init__(self) -> None:
        checks.count(num_heads=self.num_heads, head_dim=self.head_dim, block=self.block, top_k=self.top_k)

    @property
    def norm_width(self) -> int:
        """A norm for its queries and one for its keys."""
        return 2 * self.head_dim

    def parameters(self, *, hidden: int) -> int:
        """Its projections of queries and of the one key.

        Formula:  hidden * (num_heads + 1) * head_dim

        >>> BlockIndexer(num_heads=4, head_dim=128, block=128, top_k=16).parameters(hidden=6144)
        3932160
        """
        checks.count(hidden=hidden)
        return hidden * (self.num_heads + 1) * self.head_dim
