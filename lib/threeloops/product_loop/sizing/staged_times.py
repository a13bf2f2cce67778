"""Staged times: steps and prompts of a model whose layers are cut into stages, each on a tensor group of its own, which
hand the tokens' values on over the network.

>>> whole = RequestTimes(decode_s=((1, 0.010), (64, 0.014)), prompt_s=0.110, new=1000)
>>> both = staged_times(
...     whole, Stages(number=2, network_bytes_per_s=50e9), hidden=8192, tp=8, num_layers=80, most=128, real=True
... )
>>> f"{both.step_s(128) * 1e3:.2f} ms for 128 requests, which two stages hold as two batches of 64"
'14.02 ms for 128 requests, which two stages hold as two batches of 64'
"""

import math
from dataclasses import dataclass, replace
from typing import Any

from threeloops import checks, dtypes
from threeloops.product_loop.sizing.request_times import RequestTimes, doubled
from threeloops.training_loop.parallelism.published_layouts import assumptions

ACTIVATIONS = "bf16"
TENSORS = 2  # engines hand on what a layer made and the residual, which its successor adds up


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """How many there are, and what joins them."""

    number: int
    network_bytes_per_s: float  # each GPU's way out of its node, one way

    def __post_init__(self) -> None:
        checks.count(pp=self.number)
        checks.positive(network_bytes_per_s=self.network_bytes_per_s)


def handover_s(stages: Stages, *, hidden: int, tp: int, tokens: int, real: bool) -> float:
    """Seconds in which the values of so many tokens go from one stage to the next.

    Formula:  tokens * hidden * 2 bytes / (tp * rate); real: of two such tensors, at the share of the rate that links
              reach, and one latency
    Units:    real: as engines do it; else the bound
    Assumes:  every GPU of a group sends its part over its own link, and the receivers gather the parts inside their
              node at no cost; every stage is on a node of its own
    Source:   vLLM, pull request 6695 (each sends a slice), model_executor/models/llama.py (IntermediateTensors); the
              share and the latency: published_layouts.assumptions
    Counted:  tests.product_loop.sizing.test_staged_times.test_a_handover_by_hand
    """
    checks.count(tp=tp, hidden=hidden, tokens=tokens)
    sent = tokens * hidden * dtypes.bytes_per_element(ACTIVATIONS) / tp
    if not real:
        return sent / stages.network_bytes_per_s
    assumed = assumptions()
    return TENSORS * sent / (assumed["link_efficiency"].value * stages.network_bytes_per_s) + assumed["alpha_s"].value


def staged_times(
    whole: RequestTimes, stages: Stages, *, hidden: int, tp: int, num_layers: int, most: int, real: bool
) -> RequestTimes:
    """Steps of up to `most` requests, which the stages hold as one batch each, and of prompts.

    Formula:  b requests a batch, one for each of p stages:
              step = max(pass(b) + p handovers, p * slowest stage); slowest stage = pass(b) * ceil(layers / p) / layers
              prompt = by itself + (p - 1) handovers of its tokens; a p-th part of it holds every stage up, all of it
              whoever is in its batch, and the others, who wait for that batch. Of the bound: a p-th part alone
    Shapes:   whole: of the model on one tensor group, with as many requests as a batch has
    Assumes:  layers of about equal cost; as many batches as stages in flight, equally large; the last handover, of new
              tokens to the first stage, costs a latency, of the bound nothing; real: an upper estimate, up to a
              quarter too long where several prompts are read in every round
    Source:   Narayanan et al., 2021, arXiv:2104.04473, section 2.2 (stages that work on batches in turn)
    Counted:  tests.product_loop.sizing.test_staged_times.test_batches_that_go_from_stage_to_stage
    """
    checks.count(num_layers=num_layers, most=most)
    if stages.number > num_layers:
        raise ValueError(f"pp={stages.number} stages are more than the {num_layers} layers")
    given: dict[str, Any] = {"hidden": hidden, "tp": tp, "real": real}
    uneven = stages.number * math.ceil(num_layers / stages.number) / num_layers
    back_s = assumptions()["alpha_s"].value if real else 0.0

    def step_s(requests: int) -> float:
        batch = math.ceil(requests / stages.number)
        pass_s = whole.step_s(batch)
        sent_s = (stages.number - 1) * handover_s(stages, **given, tokens=batch) + back_s
        return max(pass_s + sent_s, uneven * pass_s if requests >= stages.number else 0.0)

    decode_s = tuple((requests, step_s(requests)) for requests in doubled(most))
    first_s = decode_s[0][1]

    def prompt_s(new: int, alone_s: float) -> float:
        if not real:
            return first_s + max(0.0, alone_s - whole.step_s(1)) / stages.number
        return alone_s + (stages.number - 1) * handover_s(stages, **given, tokens=new)

    read_s = prompt_s(whole.new, whole.prompt_s)
    return replace(
        whole,
        decode_s=decode_s,
        prompt_s=read_s,
        groups=stages.number,
        shared_prompt_s=max(0.0, read_s - first_s) / (stages.number if real else 1),
        prompts_s=tuple((new, prompt_s(new, alone_s)) for new, alone_s in whole.prompts_s),
    )
