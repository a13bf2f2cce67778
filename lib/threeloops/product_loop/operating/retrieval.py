"""What stands before the first token of an answer that is looked up first.

>>> round(
...     retrieved_ttft_s(
...         embed_s=9e-3,
...         search_s=14e-3,
...         found=100,
...         reranked_at_once=32,
...         rerank_s=21e-3,
...         prompt_tokens=8 * 450 + 60,
...         token_s=46e-6,
...     ),
...     4,
... )
0.2754
"""

from threeloops import checks


def retrieved_ttft_s(
    *,
    embed_s: float,
    search_s: float,
    found: int,
    reranked_at_once: int,
    rerank_s: float,
    prompt_tokens: int,
    token_s: float,
) -> float:
    """TTFT of an answer from documents: the question is embedded, passages are searched and scored again, and the best
    are read before it.

    Formula:  embed + search + ceil(found / reranked_at_once) * rerank + prompt_tokens * token_s
    Units:    seconds; rerank_s is one batch of the reranker, token_s a token of the prompt
    Assumes:  one stage after the other, no queue, nothing of the prompt cached, a last batch that takes as long as a
              full one; the network left out
    Raises:   ValueError for a time that is negative, or a count below 1
    Source:   Lewis et al., 2020, arXiv:2005.11401, section 2 (passages found, then read with the question); Nogueira
              and Cho, 2019, arXiv:1901.04085, section 2 (a reranker reads each passage together with the question)
    Counted:  drills.batching.retrieved.RETRIEVED
    """
    checks.count(found=found, reranked_at_once=reranked_at_once, prompt_tokens=prompt_tokens)
    checks.non_negative(embed_s=embed_s, search_s=search_s, rerank_s=rerank_s, token_s=token_s)
    batches = -(-found // reranked_at_once)
    return embed_s + search_s + batches * rerank_s + prompt_tokens * token_s
