"""Count: attention over a sequence that is cut into pieces, really computed on simulated ranks that send each other
what they need.

Ring attention passes keys and values on and adds up softmax pieces as they come; Ulysses trades pieces of the
sequence for heads. Both end with what undivided attention gives, and every message is written down.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from threeloops.simulate.training_loop.network import Array, Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Attended:
    """The output in the order of the sequence, and what it took."""

    output: Array  # [tokens, heads, head_dim]
    sent_bytes: tuple[int, ...]  # per rank
    pairs: tuple[tuple[int, ...], ...]  # [step][rank]: query-key pairs that the mask left to compute


def pieces(*, sequence: int, ranks: int, zigzag: bool) -> list[Array]:
    """Which tokens each rank has.

    >>> [piece.tolist() for piece in pieces(sequence=8, ranks=2, zigzag=True)]
    [[0, 1, 6, 7], [2, 3, 4, 5]]
    """
    if not zigzag:
        return list(np.arange(sequence).reshape(ranks, -1))
    runs = np.arange(sequence).reshape(2 * ranks, -1)
    return [np.concatenate([runs[rank], runs[2 * ranks - 1 - rank]]) for rank in range(ranks)]


def _scores(queries: Array, keys: Array) -> Array:
    """[heads, queries, keys]; several query heads share a KV head."""
    shared = np.repeat(keys, queries.shape[1] // keys.shape[1], axis=1)
    scores: Array = np.einsum("qhd,khd->hqk", queries, shared) / np.sqrt(queries.shape[2])
    return scores


def undivided(queries: Array, keys: Array, values: Array, *, rows: Array, columns: Array) -> Array:
    """Causal attention of some tokens to others, by their places in the sequence."""
    scores = np.where(columns <= rows[:, None], _scores(queries, keys), -np.inf)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    shared = np.repeat(values, queries.shape[1] // values.shape[1], axis=1)
    output: Array = np.einsum("hqk,khd->qhd", weights / weights.sum(axis=2, keepdims=True), shared)
    return output


def ring_attention(queries: Array, keys: Array, values: Array, *, ranks: int, zigzag: bool) -> Attended:
    """Causal attention; rank r works on the piece that came to it and passes it on to rank r + 1.

    Shapes:   queries [tokens, heads, head_dim], keys and values [tokens, KV heads, head_dim]
    """
    own, network = pieces(sequence=len(queries), ranks=ranks, zigzag=zigzag), Network(ranks)
    held = [np.stack([keys[piece], values[piece]]) for piece in own]
    top = [np.full((queries.shape[1], len(piece)), -np.inf) for piece in own]
    total = [np.zeros_like(each) for each in top]
    summed = [np.zeros((queries.shape[1], len(piece), queries.shape[2])) for piece in own]
    counted = []
    for step in range(ranks):
        step_pairs = []
        for rank, rows in enumerate(own):
            columns = own[(rank - step) % ranks]
            seen = columns <= rows[:, None]
            step_pairs.append(int(seen.sum()))
            scores = np.where(seen, _scores(queries[rows], held[rank][0]), -np.inf)
            higher = np.maximum(top[rank], scores.max(axis=2))
            safe = np.where(np.isinf(higher), 0.0, higher)
            weights, shrink = np.exp(scores - safe[:, :, None]), np.exp(top[rank] - safe)
            shared = np.repeat(held[rank][1], queries.shape[1] // values.shape[1], axis=1)
            total[rank] = total[rank] * shrink + weights.sum(axis=2)
            summed[rank] = summed[rank] * shrink[:, :, None] + np.einsum("hqk,khd->hqd", weights, shared)
            top[rank] = higher
        counted.append(tuple(step_pairs))
        if step < ranks - 1:
            arrived = network.exchange([(rank, (rank + 1) % ranks, held[rank]) for rank in range(ranks)])
            held = [arrived[(rank - 1) % ranks] for rank in range(ranks)]
    output = np.empty_like(queries)
    for rank, rows in enumerate(own):
        output[rows] = (summed[rank] / total[rank][:, :, None]).transpose(1, 0, 2)
    return Attended(output=output, sent_bytes=_sent(network), pairs=tuple(counted))


def ulysses_attention(queries: Array, keys: Array, values: Array, *, ranks: int) -> Attended:
    """Causal attention; an all-to-all gives each rank the whole sequence for some heads, another brings the outputs
    back.
    """
    network, own = Network(ranks), pieces(sequence=len(queries), ranks=ranks, zigzag=False)
    everyone = np.arange(len(queries))
    by_heads = []
    for tensor in (queries, keys, values):
        heads = tensor.shape[1] // ranks
        cut = [[tensor[piece][:, rank * heads : (rank + 1) * heads] for rank in range(ranks)] for piece in own]
        by_heads.append([np.concatenate(column) for column in _all_to_all(network, cut)])
    done = [undivided(q, k, v, rows=everyone, columns=everyone) for q, k, v in zip(*by_heads, strict=True)]
    back = _all_to_all(network, [[output[piece] for piece in own] for output in done])
    output = np.concatenate([np.concatenate(column, axis=1) for column in back])
    pairs = tuple(len(queries) * (len(queries) + 1) // 2 for _ in range(ranks))
    return Attended(output=output, sent_bytes=_sent(network), pairs=(pairs,))


def _all_to_all(network: Network, cut: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """cut[source][destination]; returns [destination][source]."""
    ranks = len(cut)
    came = [[cut[rank][rank] if source == rank else np.empty(0) for source in range(ranks)] for rank in range(ranks)]
    for shift in range(1, ranks):
        targets = [(rank + shift) % ranks for rank in range(ranks)]
        arrived = network.exchange([(rank, targets[rank], cut[rank][targets[rank]]) for rank in range(ranks)])
        for rank, tensor in enumerate(arrived):
            came[targets[rank]][rank] = tensor
    return came


def _sent(network: Network) -> tuple[int, ...]:
    return tuple(
        sum(message.num_bytes for message in network.messages if message.source == rank)
        for rank in range(network.ranks)
    )
