"""Pool ratio: nodes that read prompts and nodes that decode, for a flow of tokens, and what a fixed split serves when
the flow shifts.

>>> rates = NodeRates(prefill_tokens_per_s=73.7e3, decode_tokens_per_s=14.8e3)
>>> day = nodes_needed(rates, input_tokens_per_s=608e9 / 86400, output_tokens_per_s=168e9 / 86400)
>>> f"{day.prefill:.1f} for prefill, {day.decode:.1f} for decode"
'95.5 for prefill, 131.4 for decode'

Source: DeepSeek-AI, open-infra-index, day 6, 2025 (rates of its nodes and the tokens of a day)
"""

from dataclasses import dataclass

from threeloops import checks


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRates:
    """Tokens per second of one busy node of each pool."""

    prefill_tokens_per_s: float  # counted as the input is: with or without tokens that a cache has
    decode_tokens_per_s: float

    def __post_init__(self) -> None:
        checks.positive(prefill_tokens_per_s=self.prefill_tokens_per_s, decode_tokens_per_s=self.decode_tokens_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolNodes:
    """Nodes of each pool; fractions where they are needed on average."""

    prefill: float
    decode: float

    def __post_init__(self) -> None:
        checks.positive(prefill=self.prefill, decode=self.decode)

    @property
    def total(self) -> float:
        return self.prefill + self.decode

    @property
    def prefill_share(self) -> float:
        return self.prefill / self.total


def nodes_needed(rates: NodeRates, *, input_tokens_per_s: float, output_tokens_per_s: float) -> PoolNodes:
    """Nodes of each pool that are busy all the time.

    Formula:  input tokens/s / prefill rate; output tokens/s / decode rate
    Assumes:  every node at its full rate, whatever its load; no headroom
    Counted:  simulate.product_loop.experts.pool_flow.flow_per_s
    """
    checks.positive(input_tokens_per_s=input_tokens_per_s, output_tokens_per_s=output_tokens_per_s)
    return PoolNodes(
        prefill=input_tokens_per_s / rates.prefill_tokens_per_s,
        decode=output_tokens_per_s / rates.decode_tokens_per_s,
    )


def split_capacity(held: PoolNodes, *, needed: PoolNodes) -> float:
    """The flow that a fixed split serves over the flow that `needed` belongs to: a bound, that of the pool which runs
    out first.

    Formula:  min(held prefill / needed prefill, held decode / needed decode)
    Assumes:  the mix of prompts and answers stays; as nodes_needed
    Source:   by definition: the smaller pool decides
    Counted:  simulate.product_loop.experts.pool_flow.flow_per_s

    >>> split_capacity(PoolNodes(prefill=3, decode=5), needed=PoolNodes(prefill=1, decode=2))
    2.5
    """
    return min(held.prefill / needed.prefill, held.decode / needed.decode)
