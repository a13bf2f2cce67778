"""Latent module: the work of one GPU's share of a latent-attention block, from the layer's input to its output.

The widths are those of DeepSeek-V3, which Kimi K2 has too, with half as many heads: no others are timed.

Source: DeepSeek-AI, DeepSeek-V3, 2024, arXiv:2412.19437, section 4.2 (widths); DeepSeek-V2, 2024, arXiv:2405.04434,
        appendix C (what is absorbed)
"""

from threeloops import checks
from threeloops.operations.roofline import Work

HIDDEN, QUERY_RANK, KV_RANK = 7168, 1536, 512
PLAIN, ROTATED, VALUE = 128, 64, 128  # of each head: the key without and with position, and the value
WIDTH = KV_RANK + ROTATED  # of what is cached of a token
ACTIVATION_BYTES = 2


def latent_weights(num_heads: int) -> int:
    """Elements of a block's weights for so many heads: what compresses is whole on every GPU.

    Formula:  hidden * (query rank + KV rank + rotated) + heads * (query rank * (plain + rotated)
              + KV rank * (plain + value) + value * hidden)
    Counted:  tests.operations.test_latent_module.test_weights_are_those_of_the_model

    >>> f"{latent_weights(128) / 1e6:.0f} million, of which {latent_weights(16) / 1e6:.0f} on each of eight GPUs"
    '187 million, of which 37 on each of eight GPUs'
    """
    checks.count(num_heads=num_heads)
    each = QUERY_RANK * (PLAIN + ROTATED) + KV_RANK * (PLAIN + VALUE) + VALUE * HIDDEN
    return HIDDEN * (QUERY_RANK + WIDTH) + num_heads * each


def latent_decode(
    *, batch: int, num_heads: int, tokens: int, bytes_per_element: float, cache_bytes_per_element: float
) -> Work:
    """One new token of each request, attending to the cached latents of `tokens` tokens; the expansion is absorbed.

    Formula:  FLOPs: 2 * batch * weights + 2 * batch * heads * tokens * (width + KV rank)
              bytes: weights + batch * tokens * width of the cache + the block's input and output
    Assumes:  every weight is multiplied once a token; a latent is read once for all heads
    Counted:  tests.operations.test_latent_module.test_flops_and_bytes_are_those_of_its_operations

    >>> one = latent_decode(batch=64, num_heads=16, tokens=4096, bytes_per_element=1, cache_bytes_per_element=2)
    >>> round(one.moved_bytes / 1e6), round(one.flops / 1e9)
    (340, 14)
    """
    checks.count(batch=batch, num_heads=num_heads, tokens=tokens)
    weights = latent_weights(num_heads)
    return Work(
        flops=2 * batch * (weights + num_heads * tokens * (WIDTH + KV_RANK)),
        moved_bytes=weights * bytes_per_element
        + batch * tokens * WIDTH * cache_bytes_per_element
        + 2 * batch * HIDDEN * ACTIVATION_BYTES,
    )


def latent_prefill(
    *, batch: int, num_heads: int, tokens: int, bytes_per_element: float, cache_bytes_per_element: float
) -> Work:
    """Prompts of `tokens` tokens, keys and values of every head rebuilt; causal.

    Formula:  FLOPs: 2 * batch * tokens * weights + batch * tokens^2 * heads * (plain + rotated + value)
              bytes: weights + latents written + the block's input and output
    Assumes:  half of the square is computed
    Counted:  tests.operations.test_latent_module.test_flops_and_bytes_are_those_of_its_operations
    """
    checks.count(batch=batch, num_heads=num_heads, tokens=tokens)
    weights, rows = latent_weights(num_heads), batch * tokens
    return Work(
        flops=2 * rows * weights + rows * tokens * num_heads * (PLAIN + ROTATED + VALUE),
        moved_bytes=weights * bytes_per_element
        + rows * WIDTH * cache_bytes_per_element
        + 2 * rows * HIDDEN * ACTIVATION_BYTES,
    )
