"""Compressed attention: a window of tokens as they are, and behind it one entry for every so many tokens.

>>> flash = {"num_heads": 64, "head_dim": 512, "q_rank": 1024, "window": 128, "groups": 8, "output_rank": 1024}
>>> CompressedAttention(**flash, ratio=128).kept_elements(tokens=1280, window_tokens=128)
70656
"""

from dataclasses import dataclass
from typing import ClassVar

from threeloops import checks
from threeloops.models.layers.indexers import Indexer


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedAttention:
    """One layer of DeepSeek-V4: one vector per token that is key and value of all heads, inside a window; behind it one
    such vector for each `ratio` tokens, of which an indexer may choose.

    Source: DeepSeek-AI, DeepSeek-V4, 2026, section 2.3; transformers 5.23,
            models/deepseek_v4/modeling_deepseek_v4.py (DeepseekV4Attention and both compressors)
    """

    num_heads: int
    head_dim: int
    q_rank: int
    window: int  # tokens, the query's own included
    groups: int  # of heads, each with a compressing output projection of its own
    output_rank: int  # width that each group's output is compressed to
    ratio: int | None = None  # tokens that become one entry; None: the window is all
    indexer: Indexer | None = None  # chooses entries; with it they overlap: each is made of twice `ratio` tokens
    unusual: ClassVar[str] = "attention to compressed tokens"

    def __post_init__(self) -> None:
        checks.count(num_heads=self.num_heads, head_dim=self.head_dim, q_rank=self.q_rank, window=self.window)
        checks.count(groups=self.groups, output_rank=self.output_rank)
        checks.divides(part="groups", part_value=self.groups, whole="num_heads", whole_value=self.num_heads)
        if self.ratio is not None:
            checks.count(ratio=self.ratio)
        elif self.indexer:
            raise ValueError("an indexer chooses among entries, and ratio=None makes none")

    @property
    def entry_width(self) -> int:
        """Numbers kept for each compressed entry, the indexer's key among them.

        Source: as the class
        """
        return 0 if self.ratio is None else self.head_dim + (self.indexer.head_dim if self.indexer else 0)

    def kept_elements(self, *, tokens: int, window_tokens: int) -> int:
        """Numbers kept of `tokens` tokens, of which `window_tokens` lie in the window.

        Formula:  head_dim * window_tokens + entry_width * floor(tokens / ratio)
        Assumes:  what waits to be compressed is not counted: inputs and weights of fewer than 2 * ratio tokens
        Source:   as the class
        Measured: tests.models.readers.test_compressed_readers.test_entries_and_windows_are_what_the_class_keeps
        """
        checks.count(at_least=0, tokens=tokens, window_tokens=window_tokens)
        entries = 0 if self.ratio is None else tokens // self.ratio
        return self.head_dim * window_tokens + self.entry_width * entries

    @property
    def norm_width(self) -> int:
        """Weights of the norms of compressed queries, of the vector, and of entries of either kind."""
        entries = self.entry_width
        return self.q_rank + self.head_dim + entries

    def parameters(self, *, hidden: int) -> int:
        """Projections, sinks, and what compresses; without the norms.

        Formula:  hidden * q_rank + q_rank * num_heads * head_dim + hidden * head_dim + num_heads * head_dim *
                  output_rank + groups * output_rank * hidden + num_heads (sinks); compressing: (2 * hidden + ratio) *
                  head_dim, twice that with an indexer, whose own compressing, queries and weights come on top

        >>> flash = {"num_heads": 64, "head_dim": 512, "q_rank": 1024, "window": 128, "groups": 8, "output_rank": 1024}
        >>> CompressedAttention(**flash, ratio=128).parameters(hidden=4096)
        111214656
        """
        checks.count(hidden=hidden)
        queries = hidden * self.q_rank + self.q_rank * self.num_heads * self.head_dim
        out = self.num_heads * self.head_dim * self.output_rank + self.groups * self.output_rank * hidden
        own = queries + hidden * self.head_dim + out + self.num_heads
        if self.ratio is None:
            return own
        per_width, one = 2 * hidden + self.ratio, self.indexer
        if one is None:
            return own + per_width * self.head_dim
        indexing = self.q_rank * one.num_heads * one.head_dim + hidden * one.num_heads
        return own + 2 * per_width * (self.head_dim + one.head_dim) + indexing
