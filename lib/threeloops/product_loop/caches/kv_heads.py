"""KV heads of one rank: what tensor parallelism leaves of grouped heads, and when ranks begin to hold copies.

>>> kv_heads_per_rank(num_heads=64, num_kv_heads=8, tp=16)
1
"""

from threeloops import checks


def kv_heads_per_rank(*, num_heads: int, num_kv_heads: int, tp: int) -> int:
    """KV heads that each tensor-parallel rank caches: its share, or one copy each once there are more ranks than KV
    heads.

    Raises: ValueError if the query heads do not split evenly, or if the KV heads neither split nor repeat evenly
    Source: vLLM, model_executor/models/llama.py, LlamaAttention, and config/model.py, ModelConfig.get_num_kv_heads

    >>> [kv_heads_per_rank(num_heads=64, num_kv_heads=8, tp=tp) for tp in (1, 4, 8, 16)]
    [8, 2, 1, 1]
    """
    checks.count(num_heads=num_heads, num_kv_heads=num_kv_heads, tp=tp)
    checks.divides(part="tp", part_value=tp, whole="num_heads", whole_value=num_heads)
    if num_kv_heads % tp and tp % num_kv_heads:
        fits = [
            n
            for n in range(1, num_heads + 1)
            if num_heads % n == 0 and (num_kv_heads % n == 0 or n % num_kv_heads == 0)
        ]
        raise ValueError(
            f"tp={tp} must divide num_kv_heads={num_kv_heads} or be a multiple of it; try tp in"
            f" {{{', '.join(map(str, fits))}}}"
        )
    return max(1, num_kv_heads // tp)
