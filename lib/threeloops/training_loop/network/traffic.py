"""Traffic: bytes that one rank sends in a training step for each way of splitting a model.

All of it is counted as sent by one rank, one direction, on bandwidth-optimal collectives (ring or halving-doubling),
whose every half sends (n - 1)/n of the whole tensor. Multiply by n for the whole network; divide by a rank's one-way
rate for the bandwidth term of the time.

>>> ddp = data_parallel_traffic(zero_stage=0, num_parameters=7e9, dp=8, bytes_per_gradient=2, bytes_per_parameter=2)
>>> round(ddp.total_bytes / 1e9, 3)
24.5

Source: Rajbhandari et al., ZeRO, 2019, arXiv:1910.02054, section 7; Shoeybi et al., Megatron-LM, 2019,
        arXiv:1909.08053, section 3;
Korthikanti et al., 2022, arXiv:2205.05198, section 4.2.2; Lepikhin et al., GShard, 2020, arXiv:2006.16668, section 3
"""

from dataclasses import dataclass

from threeloops import checks


def _once(ranks: int) -> float:
    """The share of a tensor that each rank sends in one reduce-scatter, all-gather or all-to-all."""
    return (ranks - 1) / ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class DataParallelTraffic:
    """Bytes that one data-parallel rank sends per optimiser step."""

    zero_stage: int  # of ZeRO; 0 is plain data parallelism
    dp: int
    micro_batches: int
    gradient_bytes: float
    parameter_bytes: float

    @property
    def total_bytes(self) -> float:
        return self.gradient_bytes + self.parameter_bytes


def data_parallel_traffic(
    *,
    zero_stage: int,
    num_parameters: float,
    dp: int,
    bytes_per_gradient: float,
    bytes_per_parameter: float,
    micro_batches: int = 1,
    reshard_after_forward: bool = True,
) -> DataParallelTraffic:
    """Bytes sent by one rank per optimiser step under ZeRO stage 0 (DDP), 1, 2 or 3 (FSDP).

    Formula:  in units of (dp - 1)/dp * P elements, with m micro-batches: zero_stage 0: 2 of gradients (all-reduce);
              zero_stage 1: 1 of gradients (reduce-scatter) + 1 of parameters (all-gather); zero_stage 2: m + 1;
              zero_stage 3: m of gradients + 2m of parameters, as they are gathered for the forward pass and again for
              the backward pass (m where reshard_after_forward=False keeps them)
    Units:    num_parameters that this rank's group shares (after tensor and pipeline splits)
    Assumes:  stages 0 and 1 add up gradients locally and exchange them once; 2 and 3 keep only a shard, so they
              exchange after every micro-batch; parameters travel in the format given, master weights never
    Raises:   ValueError for a zero_stage outside 0 to 3, and for reshard_after_forward=False below zero_stage 3
    Source:   Rajbhandari et al., 2019, sections 7.1 and 7.2 (2P for stages 1 and 2, 3P for zero_stage 3)
    Counted:  simulate.training_loop.traffic.zero_step
    Measured: measure.training_loop.data_parallel.data_parallel_wire

    >>> [
    ...     round(
    ...         data_parallel_traffic(
    ...             zero_stage=s, num_parameters=1e9, dp=10, bytes_per_gradient=2, bytes_per_parameter=2
    ...         ).total_bytes
    ...         / 1e9,
    ...         3,
    ...     )
    ...     for s in (0, 1, 2, 3)
    ... ]
    [3.6, 3.6, 3.6, 5.4]
    """
    checks.count(dp=dp, micro_batches=micro_batches)
    checks.positive(
        num_parameters=num_parameters, bytes_per_gradient=bytes_per_gradient, bytes_per_parameter=bytes_per_parameter
    )
    if zero_stage not in (0, 1, 2, 3):
        raise ValueError(f"zero_stage={zero_stage!r} must be 0 (plain data parallelism), 1, 2 or 3")
    if zero_stage < 3 and not reshard_after_forward:
        raise ValueError(
            f"reshard_after_forward=False needs zero_stage=3, not zero_stage={zero_stage}: below it no rank drops its"
            " parameters"
        )
    gathers = 2 if reshard_after_forward else 1
    gradient_rounds = {0: 2, 1: 1, 2: micro_batches, 3: micro_batches}[zero_stage]
    parameter_rounds = {0: 0, 1: 1, 2: 1, 3: gathers * micro_batches}[zero_stage]
    return DataParallelTraffic(
        zero_stage=zero_stage,
        dp=dp,
        micro_batches=micro_batches,
        gradient_bytes=gradient_rounds * _once(dp) * num_parameters * bytes_per_gradient,
        parameter_bytes=parameter_rounds * _once(dp) * num_parameters * bytes_per_parameter,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertParallelTraffic:
    """Bytes that one expert-parallel rank sends per micro-batch."""

    ep: int
    num_moe_layers: int
    exchange_bytes: float  # one all-to-all

    @property
    def forward_bytes(self) -> float:
        """Dispatch to the experts and combine from them, in every MoE layer."""
        return 2 * self.num_moe_layers * self.exchange_bytes

    @property
    def backward_bytes(self) -> float:
        """The gradients take the same two ways back."""
        return self.forward_bytes

    @property
    def total_bytes(self) -> float:
        return self.forward_bytes + self.backward_bytes


def expert_parallel_traffic(
    *, tokens_per_rank: int, hidden: int, top_k: int, num_moe_layers: int, ep: int, bytes_per_element: float
) -> ExpertParallelTraffic:
    """Bytes of token vectors that one rank sends in all-to-alls per micro-batch, forward and backward.

    Formula:  exchange = tokens_per_rank * top_k * hidden * bytes_per_element * (ep - 1)/ep; total = 4 *
              num_moe_layers * exchange
    Assumes:  every expert is as likely as any other, one copy travels per chosen expert (also when two of them share
              a rank), no capacity limit drops or pads tokens; router scores and indices are not counted
    Source:   Lepikhin et al., 2020, section 3 (dispatch and combine)
    Counted:  simulate.training_loop.traffic.expert_exchange
    Measured: measure.training_loop.expert_exchange.exchanged

    >>> mixtral = expert_parallel_traffic(
    ...     tokens_per_rank=4096, hidden=4096, top_k=2, num_moe_layers=32, ep=8, bytes_per_element=2
    ... )
    >>> round(mixtral.total_bytes / 1e9, 3)
    7.516
    """
    checks.count(tokens_per_rank=tokens_per_rank, hidden=hidden, top_k=top_k, num_moe_layers=num_moe_layers, ep=ep)
    checks.positive(bytes_per_element=bytes_per_element)
    exchange_bytes = tokens_per_rank * top_k * hidden * bytes_per_element * _once(ep)
    return ExpertParallelTraffic(ep=ep, num_moe_layers=num_moe_layers, exchange_bytes=exchange_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorParallelTraffic:
    """Bytes that one tensor-parallel rank sends per micro-batch."""

    tp: int
    sequence_parallel: bool
    forward_bytes: float
    backward_bytes: float
    # inputs gathered a second time for the weight gradients; papers that call the volume "the same" leave it out
    regather_bytes: float

    @property
    def total_bytes(self) -> float:
        return self.forward_bytes + self.backward_bytes + self.regather_bytes


def tensor_parallel_traffic(
    *,
    tokens: int,
    hidden: int,
    num_layers: int,
    tp: int,
    bytes_per_element: float,
    sequence_parallel: bool,
    regather_input: bool,
) -> TensorParallelTraffic:
    """Bytes of activations that one rank sends per micro-batch through layers of an attention and an MLP block each.

    Formula:  with one half = (tp - 1)/tp * tokens * hidden * bytes_per_element: forward 2 blocks * 2 halves (an
              all-reduce, or a reduce-scatter and an all-gather under sequence parallelism), backward the same;
              regather 2 blocks * 1 half
    Units:    tokens: batch times sequence of a micro-batch
    Assumes:  column-parallel then row-parallel matrices in both blocks; embedding and head not counted; nothing
              recomputed
    Raises:   ValueError for regather_input=True without sequence_parallel: there the whole input is at hand
    Source:   Shoeybi et al., 2019, section 3 (two all-reduces forward, two backward); Korthikanti et al., 2022,
              section 4.2.2 (sequence parallelism, which stores a shard of the input and gathers it again:
              regather_input=True; keeping the gathered input: False)
    Counted:  simulate.training_loop.traffic.tensor_parallel_block
    Measured: measure.training_loop.tensor_parallel.block_wire

    >>> layer = tensor_parallel_traffic(
    ...     tokens=4096,
    ...     hidden=8192,
    ...     num_layers=1,
    ...     tp=4,
    ...     bytes_per_element=2,
    ...     sequence_parallel=False,
    ...     regather_input=False,
    ... )
    >>> layer.forward_bytes / (4096 * 8192 * 2)
    3.0
    """
    checks.count(tokens=tokens, hidden=hidden, num_layers=num_layers, tp=tp)
    checks.positive(bytes_per_element=bytes_per_element)
    if regather_input and not sequence_parallel:
        raise ValueError(
            "regather_input=True needs sequence_parallel=True: without it every rank keeps the whole input"
        )
    half_bytes = _once(tp) * tokens * hidden * bytes_per_element
    blocks = 2 * num_layers
    return TensorParallelTraffic(
        tp=tp,
        sequence_parallel=sequence_parallel,
        forward_bytes=2 * blocks * half_bytes,
        backward_bytes=2 * blocks * half_bytes,
        regather_bytes=blocks * half_bytes if regather_input else 0.0,
    )
