"""Recomputation (gradient checkpointing): keep less of the forward pass, and run parts of it again when the backward
pass wants them back.

A chain of layers is cut into segments. Of a checkpointed segment only its input is kept; when the backward pass
reaches it, the whole segment is run again and everything in it is there at once.

>>> block, entry = 34, 2  # bytes per value of the residual stream: what a layer keeps, and its input alone
>>> (
...     kept_bytes(num_layers=32, block_bytes=block),
...     segments_peak_bytes(num_layers=32, every=1, block_bytes=block, input_bytes=entry),
... )
(1088, 96)

Source: Chen et al., 2016, arXiv:1604.06174; Korthikanti et al., 2022, arXiv:2205.05198, section 5
"""

import math

from threeloops import checks


def kept_bytes(*, num_layers: int, block_bytes: float) -> float:
    """Activations of a chain that keeps everything.

    Formula:  layers * what one layer keeps
    Counted:  simulate.training_loop.recomputed_step.play
    """
    checks.count(num_layers=num_layers)
    checks.positive(block_bytes=block_bytes)
    return num_layers * block_bytes


def segments_peak_bytes(*, num_layers: int, every: int, block_bytes: float, input_bytes: float) -> float:
    """Most activations at one moment of the backward pass when every segment of `every` layers keeps its input alone.

    Formula:  max over segments i of  i * input + layers of segment i * block - input  (i from 1; the last segment may
              be shorter)
    Units:    bytes, or any other unit that both sizes share
    Assumes:  equal layers; block_bytes counts a layer's input among what it keeps; gradients of activations and the
              head stand beside this
    Raises:   ValueError if a segment is longer than the chain, or a layer's input larger than all that it keeps
    Source:   Chen et al., 2016, arXiv:1604.06174, section 4.1
    Counted:  simulate.training_loop.recomputed_step.play

    >>> [segments_peak_bytes(num_layers=32, every=every, block_bytes=34, input_bytes=2) for every in (1, 2, 4, 8, 32)]
    [96, 98, 150, 278, 1088]
    """
    _check(num_layers, block_bytes, input_bytes)
    checks.count(every=every)
    if every > num_layers:
        raise ValueError(f"every={every} must be at most num_layers={num_layers}")
    full, rest = divmod(num_layers, every)
    peak = full * input_bytes + every * block_bytes - input_bytes
    return max(peak, (full + 1) * input_bytes + rest * block_bytes - input_bytes) if rest else peak


def every_kth_kept_bytes(*, num_layers: int, every: int, block_bytes: float, input_bytes: float) -> float:
    """Activations that wait between the forward and the backward pass when of every `every` layers the first keeps its
    input alone and the others everything.

    Formula:  (layers - again) * block + again * input, again = ceil(layers / every)
    Units:    bytes, or any other unit that both sizes share
    Assumes:  as segments_peak_bytes; a layer that is run again is a checkpoint of its own
    Raises:   ValueError if a layer's input is larger than all that it keeps
    Source:   PyTorch documentation, torch.utils.checkpoint, 2025 (what a checkpointed call keeps)
    Counted:  simulate.training_loop.recomputed_step.play

    >>> [every_kth_kept_bytes(num_layers=32, every=every, block_bytes=34, input_bytes=2) for every in (1, 3, 5, 32)]
    [64, 736, 864, 1056]
    """
    _check(num_layers, block_bytes, input_bytes)
    checks.count(every=every)
    again = math.ceil(num_layers / every)
    return (num_layers - again) * block_bytes + again * input_bytes


def first_layers_peak_bytes(
    *, num_layers: int, recomputed_layers: int, block_bytes: float, input_bytes: float
) -> float:
    """Most activations when the first layers of the model keep their input alone, one by one, and all others
    everything.

    Formula:  recomputed * input + max((layers - recomputed) * block, block - input if any is recomputed)
    Assumes:  the first layers are recomputed, as Megatron-LM's method "block" chooses them: when the first of them is
              run again, what the others kept is gone. Were it the last layers, block - input would stand on top of
              everything
    Raises:   ValueError if more layers are recomputed than there are
    Source:   Megatron-LM, arguments recompute_method and recompute_num_layers
    Counted:  simulate.training_loop.recomputed_step.play

    >>> first_layers_peak_bytes(num_layers=32, recomputed_layers=16, block_bytes=34, input_bytes=2)
    576
    """
    _check(num_layers, block_bytes, input_bytes)
    _check_part(recomputed_layers, num_layers)
    again = block_bytes - input_bytes if recomputed_layers else 0
    return recomputed_layers * input_bytes + max((num_layers - recomputed_layers) * block_bytes, again)


def fewest_recomputed_layers(*, num_layers: int, block_bytes: float, input_bytes: float, usable_bytes: float) -> int:
    """How many of the first layers must be recomputed, one by one, so that the activations fit in usable_bytes.

    Formula:  the smallest n with first_layers_peak_bytes(n) <= usable
    Raises:   ValueError where even recomputing every layer does not fit
    Counted:  simulate.training_loop.recomputed_step.play

    >>> fewest_recomputed_layers(num_layers=32, block_bytes=34, input_bytes=2, usable_bytes=600)
    16
    """
    checks.positive(usable_bytes=usable_bytes)
    for layers in range(num_layers + 1):
        if (
            first_layers_peak_bytes(
                num_layers=num_layers, recomputed_layers=layers, block_bytes=block_bytes, input_bytes=input_bytes
            )
            <= usable_bytes
        ):
            return layers
    raise ValueError(
        f"usable_bytes={usable_bytes:g} is too little even with every layer recomputed; shorten the sequence or shard"
    )


def best_every(*, num_layers: int, block_bytes: float, input_bytes: float) -> int:
    """The segment length, in layers, whose peak is lowest; the shortest of equals.

    Formula:  arg min of segments_peak_bytes; about sqrt(layers * input / block), which is less than 1 layer, rounded
              up, for most transformers
    Counted:  simulate.training_loop.recomputed_step.play

    >>> (
    ...     best_every(num_layers=32, block_bytes=34, input_bytes=2),
    ...     best_every(num_layers=36, block_bytes=1, input_bytes=1),
    ... )  # 6 is as good
    (1, 5)
    """
    _check(num_layers, block_bytes, input_bytes)

    def peak(every: int) -> float:
        return segments_peak_bytes(num_layers=num_layers, every=every, block_bytes=block_bytes, input_bytes=input_bytes)

    return min(range(1, num_layers + 1), key=peak)


def square_root_every(*, num_layers: int) -> int:
    """What the textbook's rule says: segments of about sqrt(layers) layers.

    Assumes:  a layer keeps nothing but its input: then, and only then, it is the best choice
    Source:   Chen et al., 2016, arXiv:1604.06174, section 4.1

    >>> square_root_every(num_layers=36)
    6
    """
    checks.count(num_layers=num_layers)
    return round(math.sqrt(num_layers))


def longest_kept_sequence(*, num_layers: int, hidden: int, num_heads: int, usable_bytes: float) -> int:
    """The longest sequence, in tokens, whose activations fit in usable_bytes when nothing is recomputed; 0 where none
    does.

    Formula:  the s with num_layers * (34 * hidden * s + 5 * num_heads * s**2) = usable_bytes, rounded down: (sqrt(b**2
              + 4 * a * c) - b) / (2 * a), a = 5 * num_heads, b = 34 * hidden, c = usable_bytes / num_layers
    Assumes:  one sequence at a time; 16-bit activations of a GPT block: LayerNorm, attention that is not fused, GELU,
              an MLP of 4 * hidden, dropout; embedding and head aside
    Raises:   ValueError for what is not positive
    Source:   Korthikanti et al., 2022, arXiv:2205.05198, section 4.1, equation 1
    Counted:  simulate.training_loop.block_tape.Blocks

    >>> longest_kept_sequence(num_layers=32, hidden=4096, num_heads=32, usable_bytes=40e9)
    2393
    """
    checks.count(num_layers=num_layers, hidden=hidden, num_heads=num_heads)
    checks.positive(usable_bytes=usable_bytes)
    a, b, c = 5 * num_heads, 34 * hidden, usable_bytes / num_layers
    return math.floor((math.sqrt(b * b + 4 * a * c) - b) / (2 * a))


def recomputed_step_s(*, forward_s: float, backward_s: float, recomputed_share: float, other_s: float = 0) -> float:
    """A step in which a share of the forward pass is run a second time.

    Formula:  forward * (1 + share) + backward + other
    Assumes:  running again takes as long as running; other_s (update, exposed communication) does not change
    Counted:  drills.training_memory.recomputation.TIME

    >>> recomputed_step_s(forward_s=1, backward_s=2, recomputed_share=1) / recomputed_step_s(
    ...     forward_s=1, backward_s=2, recomputed_share=0
    ... )
    1.3333333333333333
    """
    checks.non_negative(forward_s=forward_s, backward_s=backward_s, other_s=other_s, recomputed_share=recomputed_share)
    if recomputed_share > 1:
        raise ValueError(f"recomputed_share={recomputed_share:g} must be at most 1: nothing is run three times")
    return forward_s * (1 + recomputed_share) + backward_s + other_s


def _check(num_layers: int, block_bytes: float, input_bytes: float) -> None:
    checks.count(num_layers=num_layers)
    checks.positive(block_bytes=block_bytes, input_bytes=input_bytes)
    if input_bytes > block_bytes:
        raise ValueError(
            f"input_bytes={input_bytes:g} must be at most block_bytes={block_bytes:g}, which counts the input too"
        )


def _check_part(recomputed_layers: int, num_layers: int) -> None:
    checks.count(at_least=0, recomputed_layers=recomputed_layers)
    if recomputed_layers > num_layers:
        raise ValueError(f"recomputed_layers={recomputed_layers} must be at most num_layers={num_layers}")
