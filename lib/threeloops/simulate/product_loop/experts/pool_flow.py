"""Count: more requests than two pools can serve have all come at once; how many a second go through.

>>> one = {"prefill_token_s": 1e-4, "step_s": 0.02, "slots": 16}
>>> round(flow_per_s(2000, 101, prefill_servers=4, decode_servers=4, requests=400, **one))
18
"""

from threeloops import checks
from threeloops.simulate.product_loop.serving_policies import continuous_batching
from threeloops.simulate.product_loop.serving_pools import Pool, split
from threeloops.simulate.product_loop.serving_requests import Request
from threeloops.simulate.product_loop.serving_steps import AffineStep


def flow_per_s(
    prompt_tokens: int,
    output_tokens: int,
    *,
    prefill_servers: int,
    decode_servers: int,
    prefill_token_s: float,
    step_s: float,
    slots: int,
    requests: int = 1200,
) -> float:
    """Requests per second, from the first prompt to the last token of all. A prefill server reads one prompt at a time
    and makes its first token; a decode server gives each of its slots a token a step; sending takes no time.
    """
    checks.count(requests=requests)
    asked = [Request(0.0, prompt_tokens, output_tokens) for _ in range(requests)]
    run = split(
        asked,
        prefill=Pool(
            step_s=AffineStep(base_s=0.0, per_prefill_token_s=prefill_token_s),
            policy=continuous_batching(slots=1),
            servers=prefill_servers,
        ),
        decode=Pool(step_s=AffineStep(base_s=step_s), policy=continuous_batching(slots=slots), servers=decode_servers),
        transfer_s=lambda _: 0.0,
    )
    return requests / run.end_s
