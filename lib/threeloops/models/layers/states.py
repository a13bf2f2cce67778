"""States of further recurrent layers: Mamba 1, Kimi delta attention, gated linear attention, short convolutions alone,
Griffin's recurrence.

Each has what parameters and caches ask of a recurrent layer: its matrices, the inputs that its convolution keeps, and
the weights around them.

>>> ShortConvolution(channels=2048, conv_entries=3, bias=False).conv_elements
6144
"""

from dataclasses import dataclass
from typing import ClassVar

from threeloops import checks
from threeloops.models.layers.lightning import Lightning


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectiveScan:
    """One layer of Mamba 1: a vector of state_dim for every channel, and the last inputs of a short convolution.

    Source: Gu, Dao, Mamba, 2023, arXiv:2312.00752, section 3; transformers 5.23, models/jamba/modeling_jamba.py,
            JambaMambaMixer (norms of steps, inputs and outputs)
    """

    inner: int  # channels
    state_dim: int
    step_rank: int  # width that every channel's step is projected out of
    conv_entries: int  # tokens of convolution input that are kept: the kernel's width in transformers
    conv_bias: bool
    bias: bool  # on the projections in and out
    normed: bool  # a norm each on steps, and on what writes into and reads out of the state
    unusual: ClassVar[str] = "a scan of Mamba 1"

    def __post_init__(self) -> None:
        sizes = (self.inner, self.state_dim, self.step_rank, self.conv_entries)
        for name, size in zip(("inner", "state_dim", "step_rank", "conv_entries"), sizes, strict=True):
            checks.count(**{name: size})

    @property
    def state_heads(self) -> int:
        """Channels, each with a state of its own."""
        return self.inner

    @property
    def state_elements(self) -> int:
        """Numbers in all states."""
        return self.inner * self.state_dim

    @property
    def conv_elements(self) -> int:
        """Numbers that the convolution keeps."""
        return self.inner * self.conv_entries

    @property
    def norm_width(self) -> int:
        """Weights of the three norms."""
        return (self.step_rank + 2 * self.state_dim) * self.normed

    def parameters(self, *, hidden: int) -> int:
        """Projections, convolution, decay and skip, without the norms.

        Formula:  3 * hidden * inner + inner * (step_rank + 2 * state_dim) + step_rank * inner + inner (step's bias) +
                  inner * (conv_entries + state_dim + 1) + biases

        >>> scan = dict(inner=8192, state_dim=16, step_rank=256, conv_entries=4)
        >>> SelectiveScan(**scan, conv_bias=True, bias=False, normed=True).parameters(hidden=4096)
        105308160
        """
        checks.count(hidden=hidden)
        steps = self.inner * (2 * self.step_rank + 2 * self.state_dim + 1)
        own = self.conv_elements + self.state_elements + self.inner
        biases = self.conv_bias * self.inner + self.bias * (2 * self.inner + hidden)
        return 3 * hidden * self.inner + steps + own + biases


@dataclass(frozen=True, slots=True, kw_only=True)
class KimiDelta:
    """One layer of Kimi delta attention: gated delta net whose decay differs from channel to channel, and whose decay
    and output gates go through one head's width.

    Source: Kimi Team, Kimi Linear, 2025, arXiv:2510.26692, section 3; transformers 5.23,
            models/kimi_linear/modeling_kimi_linear.py, KimiLinearDeltaAttention
    """

    num_heads: int
    head_dim: int  # of queries, keys and values
    conv_entries: int  # tokens of convolution input that are kept: the kernel's width in transformers
    full_rank_gate: bool = False  # the output's gate is one matrix, as in Kimi K3
    unusual: ClassVar[str] = "Kimi delta attention"

    def __post_init__(self) -> None:
        checks.count(num_heads=self.num_heads, head_dim=self.head_dim, conv_entries=self.conv_entries)

    @property
    def inner(self) -> int:
        """Width of all heads side by side."""
        return self.num_heads * self.head_dim

    @property
    def state_heads(self) -> int:
        """Matrices that are kept."""
        return self.num_heads

    @property
    def state_elements(self) -> int:
        """Numbers in the matrices of all heads."""
        return self.inner * self.head_dim

    @property
    def conv_elements(self) -> int:
        """Numbers that the convolution over queries, keys and values keeps."""
        return 3 * self.inner * self.conv_entries

    @property
    def norm_width(self) -> int:
        """Weights of the norm on the way out, one for all heads."""
        return self.head_dim

    def parameters(self, *, hidden: int) -> int:
        """Projections, convolution, both gates, the strength of writing and the decay, without the norm.

        Formula:  4 * hidden * inner + 2 * (hidden + inner) * head_dim + hidden * num_heads + conv_elements + inner +
                  num_heads; with a gate of full rank one of the two (hidden + inner) * head_dim is hidden * inner

        >>> KimiDelta(num_heads=32, head_dim=128, conv_entries=4).parameters(hidden=2304)
        39514144
        """
        checks.count(hidden=hidden)
        low_rank = (hidden + self.inner) * self.head_dim
        gates = low_rank + (hidden * self.inner if self.full_rank_gate else low_rank) + hidden * self.num_heads
        return 4 * hidden * self.inner + gates + self.conv_elements + self.inner + self.num_heads


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortConvolution:
    """A gated convolution over the last few tokens, which keeps their inputs and no matrix.

    Source: Liquid AI, LFM2, 2025; transformers 5.23, models/lfm2/modeling_lfm2.py, Lfm2ShortConv
    """

    channels: int
    conv_entries: int  # tokens of convolution input that are kept: the kernel's width in transformers
    bias: bool  # on both projections and on the convolution
    unusual: ClassVar[str] = "a short convolution alone"

    def __post_init__(self) -> None:
        checks.count(channels=self.channels, conv_entries=self.conv_entries)

    @property
    def state_heads(self) -> int:
        """Channels, each with a filter of its own."""
        return self.channels

    @property
    def state_elements(self) -> int:
        """None: there is no matrix."""
        return 0

    @property
    def conv_elements(self) -> int:
        """Numbers that the convolution keeps."""
        return self.channels * self.conv_entries

    @property
    def norm_width(self) -> int:
        """None: nothing is normed on the way out."""
        return 0

    def parameters(self, *, hidden: int) -> int:
        """Two gates and the input, the filters, and the way out.

        Formula:  4 * hidden * channels + conv_elements, and with biases 4 * channels + hidden more

        >>> ShortConvolution(channels=2048, conv_entries=3, bias=False).parameters(hidden=2048)
        16783360
        """
        checks.count(hidden=hidden)
        return 4 * hidden * self.channels + self.conv_elements + self.bias * (4 * self.channels + hidden)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedRecurrence:
    """One layer of Griffin's linear recurrence: one number per channel, gated by blocks of channels, behind a short
    convolution; a second branch weighs what comes out.

    Source: De et al., Griffin, 2024, arXiv:2402.19427, section 2.4; transformers 5.23,
            models/recurrent_gemma/modeling_recurrent_gemma.py, RecurrentGemmaRecurrentBlock
    """

    channels: int
    heads: int  # blocks of channels, each with gates of its own
    conv_entries: int  # tokens of convolution input that are kept: one less than the kernel's width
    unusual: ClassVar[str] = "a gated linear recurrence"

    def __post_init__(self) -> None:
        checks.count(channels=self.channels, heads=self.heads, conv_entries=self.conv_entries)
        checks.divides(part="heads", part_value=self.heads, whole="channels", whole_value=self.channels)

    @property
    def state_heads(self) -> int:
        """Blocks of channels."""
        return self.heads

    @property
    def state_elements(self) -> int:
        """One number per channel."""
        return self.channels

    @property
    def conv_elements(self) -> int:
        """Numbers that the convolution keeps."""
        return self.channels * self.conv_entries

    @property
    def norm_width(self) -> int:
        """None: nothing is normed on the way out."""
        return 0

    def parameters(self, *, hidden: int) -> int:
        """Both branches and the way out, the convolution, two gates of every block, the decay, all with biases.

        Formula:  3 * hidden * channels + channels * (conv_entries + 1) + 2 * channels^2 / heads + biases (2 + 1 + 2 of
                  channels, one of hidden) + channels (decay)

        >>> GatedRecurrence(channels=2560, heads=10, conv_entries=3).parameters(hidden=2560)
        20999680
        """
        checks.count(hidden=hidden)
        gates = 2 * self.channels**2 // self.heads
        own = self.channels * (self.conv_entries + 1) + 6 * self.channels
        return 3 * hidden * self.channels + gates + own + hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedLinear:
    """One layer of gated linear attention: a matrix per head that decays channel by channel, without a convolution.

    Source: Yang et al., Gated Linear Attention Transformers, 2023, arXiv:2312.06635, section 4; fla/layers/gla.py,
            https://github.com/fla-org/flash-linear-attention (the width of the decay's two matrices)
    """

    num_heads: int
    key_head_dim: int
    value_head_dim: int
    decay_rank: int = 16
    conv_elements: ClassVar[int] = 0
    unusual: ClassVar[str] = "gated linear attention"

    def __post_init__(self) -> None:
        for name in ("num_heads", "key_head_dim", "value_head_dim", "decay_rank"):
            checks.count(**{name: getattr(self, name)})

    @property
    def state_heads(self) -> int:
        """Matrices that are kept."""
        return self.num_heads

    @property
    def state_elements(self) -> int:
        """Numbers in the matrices of all heads."""
        return self.num_heads * self.key_head_dim * self.value_head_dim

    @property
    def norm_width(self) -> int:
        """Weights of the norm on the way out, one for all heads."""
        return self.value_head_dim

    def parameters(self, *, hidden: int) -> int:
        """Projections, the gate on the way out and the decay's two matrices with their bias, without the norm.

        Formula:  num_heads * (2 * hidden * key_head_dim + 3 * hidden * value_head_dim + (decay_rank + 1) *
                  key_head_dim) + hidden * decay_rank

        >>> GatedLinear(num_heads=4, key_head_dim=128, value_head_dim=256).parameters(hidden=1024)
        4219392
        """
        checks.count(hidden=hidden)
        keys, values = self.num_heads * self.key_head_dim, self.num_heads * self.value_head_dim
        return hidden * (2 * keys + 3 * values + self.decay_rank) + (self.decay_rank + 1) * keys


FurtherState = SelectiveScan | KimiDelta | GatedLinear | Lightning | ShortConvolution | GatedRecurrence
