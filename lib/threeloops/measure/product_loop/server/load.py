"""Load: an open-loop client. Requests are sent when their moment has come, whether or not earlier ones were answered,
and every time is counted from that moment: a client that falls behind does not flatter the server.
"""

import asyncio
import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from threeloops.measure.product_loop import character_text
from threeloops.simulate.product_loop.serving_requests import Moments, Request
from threeloops.simulate.product_loop.serving_run import Run

REQUEST_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What came of a load: the answered requests as a run, and how many were refused, by status."""

    run: Run
    refused: dict[int, int]


def open_loop(url: str, requests: Sequence[Request], *, model: str = "target") -> Loaded:
    """Stream every request from the server at its moment; returns when the last answer has ended.

    Assumes:  prompts are pieces of the models' own text, answers are greedy
    Raises:   httpx.HTTPError if the server goes away
    """
    box: list[tuple[list[Moments], dict[int, int]]] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            box.append(asyncio.run(_all(url, requests, model)))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)  # a notebook's own event loop is running already
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    moments, refused = box[0]
    end_s = max((some.finished_s for some in moments if not some.shed), default=0.0)
    return Loaded(run=Run(moments=moments, steps=0, busy_s=0.0, end_s=end_s), refused=refused)


async def _all(url: str, requests: Sequence[Request], model: str) -> tuple[list[Moments], dict[int, int]]:
    moments = [Moments(place, request) for place, request in enumerate(requests)]
    refused: dict[int, int] = {}
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=200)
    async with httpx.AsyncClient(base_url=url, timeout=REQUEST_LIMIT_S, limits=limits) as client:
        await client.get("/health")
        begun = time.perf_counter()
        await asyncio.gather(*(_one(client, some, begun, model, refused) for some in moments))
    return moments, refused


async def _one(client: httpx.AsyncClient, moments: Moments, begun: float, model: str, refused: dict[int, int]) -> None:
    request = moments.request
    await asyncio.sleep(max(0.0, begun + request.arrival_s - time.perf_counter()))
    body = {
        "model": model,
        "prompt": text_of(request, moments.place),
        "max_tokens": request.output_tokens,
        "temperature": 0,
        "stream": True,
    }
    async with client.stream("POST", "/v1/completions", json=body) as answer:
        if answer.status_code != 200:
            moments.shed = True
            refused[answer.status_code] = refused.get(answer.status_code, 0) + 1
            return
        async for line in answer.aiter_lines():
            if line.startswith("data: {"):
                now = time.perf_counter() - begun
                moments.token_s += [now] * len(json.loads(line[6:])["choices"][0]["text"])
    moments.first_token_s, moments.finished_s = moments.token_s[0], moments.token_s[-1]


def text_of(request: Request, place: int) -> str:
    """A piece of the models' text as long as the request's prompt; another one for each place."""
    text = character_text.topics()
    begin = place * 997 % (len(text) - request.prompt_tokens)
    return text[begin : begin + request.prompt_tokens]
