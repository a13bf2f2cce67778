"""Prices: what tokens and requests cost on an interface with a prompt cache, and how busy a rented GPU must be to be
cheaper.
"""

from threeloops import checks
from threeloops.product_loop import serving


def cached_input_share(*, hit_share: float, read_price: float, write_price: float) -> float:
    """What prompt tokens cost with a prompt cache, as a share of the plain price.

    Formula:  hit * read + (1 - hit) * write
    Units:    read_price, write_price: multiples of the plain price of a prompt token; write_price is 1 where writing
              costs nothing extra
    Assumes:  every token that misses is written; hit_share counts tokens, not requests
    Source:   by definition of a mean
    Counted:  tests.product_loop.test_capacity.test_a_prompt_cache_bills_every_token

    >>> round(cached_input_share(hit_share=0.8, read_price=0.1, write_price=1.25), 3)
    0.33
    """
    checks.fraction(hit_share=hit_share)
    checks.non_negative(read_price=read_price, write_price=write_price)
    return hit_share * read_price + (1 - hit_share) * write_price


def request_dollars(
    *,
    prompt_tokens: int,
    cached_tokens: int,
    output_tokens: int,
    prompt_dollars_per_million: float,
    output_dollars_per_million: float,
    read_price: float,
) -> float:
    """What one request costs where the provider still has the beginning of its prompt in a cache.

    Formula:  ((prompt - cached + cached * read) * prompt price + output * output price) / 1e6
    Units:    read_price: multiple of the plain price of a prompt token
    Assumes:  writing into the cache costs nothing extra; cached_tokens are a part of prompt_tokens
    Raises:   ValueError if more tokens are cached than the prompt has
    Source:   Pope et al., 2022, arXiv:2211.05102, section 2 (why a token of the answer costs more than one of the
              prompt)
    Counted:  tests.product_loop.test_capacity.test_a_request_is_billed_token_by_token

    >>> request_dollars(
    ...     prompt_tokens=5000,
    ...     cached_tokens=3000,
    ...     output_tokens=400,
    ...     prompt_dollars_per_million=2,
    ...     output_dollars_per_million=9,
    ...     read_price=0.25,
    ... )
    0.0091
    """
    checks.count(prompt_tokens=prompt_tokens)
    checks.count(at_least=0, cached_tokens=cached_tokens, output_tokens=output_tokens)
    checks.non_negative(
        prompt_dollars_per_million=prompt_dollars_per_million,
        output_dollars_per_million=output_dollars_per_million,
        read_price=read_price,
    )
    if cached_tokens > prompt_tokens:
        raise ValueError(f"cached_tokens={cached_tokens} must be at most prompt_tokens={prompt_tokens}")
    prompt_dollars = (prompt_tokens - cached_tokens + cached_tokens * read_price) * prompt_dollars_per_million
    return (prompt_dollars + output_tokens * output_dollars_per_million) / serving.TOKENS_PER_MILLION


def break_even_hit_share(*, read_price: float, write_price: float) -> float:
    """The share of hits from which a prompt cache that charges for writing costs less than none.

    Formula:  (write - 1) / (write - read)
    Raises:   ValueError unless read_price < 1 <= write_price: a cache that is dearer to read never pays
    Source:   by definition of a break-even
    Counted:  tests.product_loop.test_capacity.test_a_prompt_cache_bills_every_token

    >>> round(break_even_hit_share(read_price=0.1, write_price=1.25), 3)
    0.217
    """
    checks.non_negative(read_price=read_price, write_price=write_price)
    if not read_price < 1 <= write_price:
        raise ValueError(
            f"read_price={read_price} and write_price={write_price}; reading must cost less than 1, writing at least 1"
        )
    return (write_price - 1) / (write_price - read_price)


def break_even_busy_share(*, dollars_per_hour: float, tokens_per_s: float, dollars_per_million: float) -> float:
    """How busy a rented machine must be to make tokens as cheaply as an interface sells them; above 1: never.

    Formula:  price per hour / (tokens/s * 3600 * price per million / 1e6)
    Assumes:  as serving.dollars_per_million_tokens
    Source:   by definition of a break-even
    Counted:  tests.product_loop.test_capacity.test_a_machine_as_busy_as_that_costs_the_same

    >>> round(break_even_busy_share(dollars_per_hour=2.5, tokens_per_s=2500, dollars_per_million=0.6), 3)
    0.463
    """
    checks.positive(dollars_per_million=dollars_per_million)
    always = serving.dollars_per_million_tokens(
        dollars_per_hour=dollars_per_hour, tokens_per_s=tokens_per_s, busy_share=1
    )
    return always / dollars_per_million
