"""Count: attention over latents that lie on several ranks, a token each in turn, with every number that is sent.

Each rank has its heads' queries, sends them to the others, attends over the tokens that it holds, and sends the
results back to whom the heads belong, with the logarithm of their sum of exponentials. There they are merged.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def attend(queries: Floats, latents: Floats, *, ranks: int, value_width: int) -> tuple[Floats, int, int]:
    """Results of all heads, and the most that one rank sends: numbers of queries and results, and of logarithms.

    queries [heads, width] are dealt out by heads, latents [tokens, width] by turns; a value is the latent's beginning.

    >>> whole, sent, logs = attend(np.ones((4, 3)), np.ones((6, 3)), ranks=2, value_width=2)
    >>> whole.shape, sent, logs
    ((4, 2), 10, 2)
    """
    each = len(queries) // ranks
    sent, logs = [0] * ranks, [0] * ranks
    results: dict[int, list[tuple[Floats, Floats]]] = {owner: [] for owner in range(ranks)}
    for holder in range(ranks):
        mine = latents[holder::ranks]
        for owner in range(ranks):
            asked = queries[owner * each : (owner + 1) * each]
            part, log = _partial(asked, mine, value_width)
            if owner != holder:
                sent[owner] += asked.size
                sent[holder] += part.size
                logs[holder] += log.size
            results[owner].append((part, log))
    merged = [_merged(results[owner]) for owner in range(ranks)]
    return np.concatenate(merged), max(sent), max(logs)


def _partial(queries: Floats, latents: Floats, value_width: int) -> tuple[Floats, Floats]:
    scores = queries @ latents.T
    highest = scores.max(axis=1)
    weights = np.exp(scores - highest[:, None])
    total = weights.sum(axis=1)
    return weights @ latents[:, :value_width] / total[:, None], highest + np.log(total)


def _merged(parts: list[tuple[Floats, Floats]]) -> Floats:
    logs = np.stack([log for _, log in parts])
    shares = np.exp(logs - logs.max(axis=0))
    shares /= shares.sum(axis=0)
    return sum((share[:, None] * part for share, (part, _) in zip(shares, parts, strict=True)), np.zeros(()))
