"""Training steps split over ranks, computed for real, with every byte counted: ZeRO stages, a tensor-parallel block,
an exchange with experts.

Each returns its numbers beside the bytes, so that a test can compare them with the undivided computation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from threeloops import checks
from threeloops.simulate.training_loop import ring
from threeloops.simulate.training_loop.network import Array, Network, Run, cuts


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What each rank ends with, and what each has sent."""

    outputs: tuple[Array, ...]
    sent_bytes: tuple[int, ...]  # per rank


def _sum_of(runs: Sequence[Run]) -> tuple[int, ...]:
    return tuple(sum(by_run) for by_run in zip(*(run.sent_bytes for run in runs), strict=True))


def zero_step(parameters: Array, inputs: Sequence[Sequence[float]], *, stage: int, learning_rate: float) -> Counted:
    """One step of SGD on mean over ranks of sum over micro-batches of |x * parameters|^2 / 2;
    inputs[rank][micro_batch] is x.

    The gradient, x^2 * parameters, differs between ranks and needs the parameters, so stage 3 cannot do without
    gathering them.

    >>> weights, inputs = np.array([1.0, 2.0, 3.0, 4.0]), [[1.0, 2.0], [2.0, 1.0]]  # two ranks, two micro-batches
    >>> for stage in range(4):
    ...     done = zero_step(weights, inputs, stage=stage, learning_rate=0.1)
    ...     print(stage, done.sent_bytes, [shard.tolist() for shard in done.outputs])
    0 (32, 32) [[0.5, 1.0, 1.5, 2.0], [0.5, 1.0, 1.5, 2.0]]
    1 (32, 32) [[0.5, 1.0, 1.5, 2.0], [0.5, 1.0, 1.5, 2.0]]
    2 (48, 48) [[0.5, 1.0, 1.5, 2.0], [0.5, 1.0, 1.5, 2.0]]
    3 (96, 96) [[0.5, 1.0], [1.5, 2.0]]
    """
    if stage not in (0, 1, 2, 3):
        raise ValueError(f"stage={stage!r} must be 0, 1, 2 or 3")
    ranks, pieces = len(inputs), cuts(len(parameters), len(inputs))
    shards = [parameters[piece].copy() for piece in pieces]
    whole = [parameters.copy() for _ in inputs]
    sums = [np.zeros_like(parameters) for _ in inputs]  # of gradients, local: stages 0 and 1
    owned = [np.zeros_like(shard) for shard in shards]  # of gradients, one shard each: stages 1 to 3
    runs: list[Run] = []

    def run(done: Run) -> list[Array]:
        runs.append(done)
        return list(done.outputs)

    for micro_batch in range(len(inputs[0])):
        if stage == 3:
            whole = run(ring.all_gather(shards))  # for the forward pass; dropped after it
            whole = run(ring.all_gather(shards))  # for the backward pass
        gradients = [x[micro_batch] ** 2 * vector for x, vector in zip(inputs, whole, strict=True)]
        if stage >= 2:
            owned = [total + piece for total, piece in zip(owned, run(ring.reduce_scatter(gradients)), strict=True)]
        else:
            sums = [total + gradient for total, gradient in zip(sums, gradients, strict=True)]
    if stage == 0:
        outputs = [
            vector - learning_rate / ranks * total
            for vector, total in zip(whole, run(ring.all_reduce(sums)), strict=True)
        ]
        return Counted(outputs=tuple(outputs), sent_bytes=_sum_of(runs))
    if stage == 1:
        owned = run(ring.reduce_scatter(sums))
    shards = [shard - learning_rate / ranks * total for shard, total in zip(shards, owned, strict=True)]
    outputs = run(ring.all_gather(shards)) if stage < 3 else shards
    return Counted(outputs=tuple(outputs), sent_bytes=_sum_of(runs))


def tensor_parallel_block(x: Array, up: Array, down: Array, output_gradient: Array, *, tp: int) -> Counted:
    """y = relu(x @ up) @ down forward and backward, `up` cut by columns and `down` by rows; outputs are y and the
    gradient of x, as rank 0 has them.

    Shapes:   x and output_gradient [tokens, hidden], up [hidden, wide], down [wide, hidden]
    """
    checks.divides(part="tp", part_value=tp, whole="wide", whole_value=up.shape[1])
    pieces = cuts(up.shape[1], tp)
    inner = [np.maximum(x @ up[:, piece], 0) for piece in pieces]
    forward = ring.all_reduce([(h @ down[piece]).ravel() for h, piece in zip(inner, pieces, strict=True)])
    backward = ring.all_reduce(
        [
            ((output_gradient @ down[piece].T * (h > 0)) @ up[:, piece].T).ravel()
            for h, piece in zip(inner, pieces, strict=True)
        ]
    )
    outputs = (forward.outputs[0].reshape(x.shape), backward.outputs[0].reshape(x.shape))
    return Counted(outputs=outputs, sent_bytes=_sum_of([forward, backward]))


def expert_exchange(tokens: Sequence[Array], choices: Sequence[Array], *, experts_per_rank: int) -> Counted:
    """Tokens go to their experts and come back: expert e multiplies by e + 1, and each token ends as the sum over its
    experts.

    Shapes:   tokens[rank] [tokens, hidden]; choices[rank] [tokens, top_k] of expert numbers, expert e living on rank
              e // experts_per_rank
    """
    ranks = len(tokens)
    network, outputs = Network(ranks), [np.zeros_like(vectors) for vectors in tokens]
    for shift in range(ranks):
        targets = [(rank + shift) % ranks for rank in range(ranks)]
        # (token, place in its top k)
        chosen = [
            np.nonzero(choice // experts_per_rank == target) for choice, target in zip(choices, targets, strict=True)
        ]
        sent = [vectors[rows] for vectors, (rows, _) in zip(tokens, chosen, strict=True)]
        # What a rank keeps for itself does not touch the network.
        arrived = network.exchange([(rank, targets[rank], sent[rank]) for rank in range(ranks)]) if shift else sent
        worked = [
            vectors * (choice[rows, places] + 1)[:, None]
            for vectors, choice, (rows, places) in zip(arrived, choices, chosen, strict=True)
        ]
        returned = network.exchange([(targets[rank], rank, worked[rank]) for rank in range(ranks)]) if shift else worked
        for output, (rows, _), vectors in zip(outputs, chosen, returned, strict=True):
            np.add.at(output, rows, vectors)
    sent_bytes = [
        sum(message.num_bytes for message in network.messages if message.source == rank) for rank in range(ranks)
    ]
    return Counted(outputs=tuple(outputs), sent_bytes=tuple(sent_bytes))
