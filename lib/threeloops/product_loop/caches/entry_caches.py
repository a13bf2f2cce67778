"""Entry caches: what a layer of compressed attention keeps, a vector for each token of its window and an entry for
every so many tokens behind it.

>>> from threeloops.models.layers.compressed import CompressedAttention
>>> flash = {"num_heads": 64, "head_dim": 512, "q_rank": 1024, "window": 128, "groups": 8, "output_rank": 1024}
>>> entries_bytes(
...     CompressedAttention(**flash, ratio=128),
...     entries=2,
...     window_tokens=128,
...     bytes_per_element=2,
...     quantisation=UNQUANTISED,
... )
133120
"""

from threeloops import checks
from threeloops.models.layers.compressed import CompressedAttention
from threeloops.product_loop.kv_quantisation import UNQUANTISED, Quantisation

__all__ = ["UNQUANTISED", "entries_bytes", "entry_bytes", "token_vector_bytes"]


def token_vector_bytes(
    attention: CompressedAttention, *, bytes_per_element: float, quantisation: Quantisation
) -> float:
    """Bytes of the one vector of a token that is key and value of all heads, and of an entry without its index key.

    Formula:  head_dim * bytes_per_element + scales
    Source:   as CompressedAttention
    Measured: tests.models.readers.test_compressed_readers.test_entries_and_windows_are_what_the_class_keeps
    """
    checks.positive(bytes_per_element=bytes_per_element)
    return attention.head_dim * bytes_per_element + quantisation.vector_scale_bytes(attention.head_dim)


def entry_bytes(attention: CompressedAttention, *, bytes_per_element: float, quantisation: Quantisation) -> float:
    """Bytes of one compressed entry, its index key included; 0 where the window is all.

    Formula:  token_vector_bytes + index key and its scales
    Source:   as CompressedAttention
    Measured: tests.models.readers.test_compressed_readers.test_entries_and_windows_are_what_the_class_keeps
    """
    if attention.ratio is None:
        return 0
    own = token_vector_bytes(attention, bytes_per_element=bytes_per_element, quantisation=quantisation)
    indexer = attention.indexer
    return own + (quantisation.index_bytes(indexer.head_dim, bytes_per_element=bytes_per_element) if indexer else 0)


def entries_bytes(
    attention: CompressedAttention,
    *,
    entries: float,
    window_tokens: int,
    bytes_per_element: float,
    quantisation: Quantisation,
) -> float:
    """Bytes of so many entries and of so many tokens in the window, on every rank: there are no heads to split.

    Formula:  entries * entry_bytes + window_tokens * token_vector_bytes
    Assumes:  what waits to be compressed is not counted: inputs and weights of fewer than 2 * ratio tokens
    Source:   as CompressedAttention
    Measured: tests.models.readers.test_compressed_readers.test_entries_and_windows_are_what_the_class_keeps
    """
    checks.non_negative(entries=entries)
    checks.count(at_least=0, window_tokens=window_tokens)
    vector = token_vector_bytes(attention, bytes_per_element=bytes_per_element, quantisation=quantisation)
    each = entry_bytes(attention, bytes_per_element=bytes_per_element, quantisation=quantisation)
    return entries * each + window_tokens * vector
