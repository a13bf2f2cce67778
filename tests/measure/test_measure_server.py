"""The server under everything that clients do to it: crowds, people who leave, nonsense, a full cache, a full queue.
Nothing hangs, no block is lost, every refusal is one sentence in the API's own form.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import openai
import pytest
import torch
from served_here import in_this_process

from threeloops import wall_clock
from threeloops.measure.product_loop import small_language_model
from threeloops.measure.product_loop.character_decoder import Decoder, DecoderSizes
from threeloops.measure.product_loop.server import running
from threeloops.measure.product_loop.server.api_front import Front
from threeloops.measure.product_loop.server.blocks import BlockPool
from threeloops.measure.product_loop.server.engine import Engine, Limits
from threeloops.measure.product_loop.server.errors import Refusal
from threeloops.measure.product_loop.server.generation import Generation, Order
from threeloops.measure.product_loop.server.scheduler import Scheduler

pytestmark = pytest.mark.timeout(300)
SIZES = DecoderSizes(hidden=24, layers=2, heads=4, kv_heads=2, head_dim=6, intermediate=32)
LIMITS = Limits(slots=16, token_budget=48, blocks=64, block_tokens=8, most_waiting=400, context=128)
TIGHT = Limits(slots=6, token_budget=12, blocks=9, block_tokens=8, most_waiting=2, context=64)
PATIENCE_S = 120.0  # on a machine that is busy with other tests


def ran(work: Coroutine[Any, Any, Any]) -> Any:
    """Run in a thread of its own: a browser test in the same process leaves an event loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def decoder() -> Decoder:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        made = Decoder(SIZES).eval().requires_grad_(False)
        made.embedding.weight.normal_(std=1.0)
        for block in made.blocks:  # untrained attention says little; here the answer hangs on all that was read
            block.output.weight *= 12
            block.qkv.weight *= 2
    return made


@pytest.fixture(scope="module")
def served(decoder: Decoder) -> Iterator[tuple[Front, str]]:
    with in_this_process(decoder, limits=LIMITS) as (front, url):
        yield front, url


@pytest.fixture
def client(served: tuple[Front, str]) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served[1], timeout=PATIENCE_S) as made:
        yield made


def body(**changes: object) -> dict[str, object]:
    return {"model": "tiny", "prompt": "for x in y", "max_tokens": 6, "temperature": 0} | changes


def all_free(front: Front) -> bool:
    """Whether every block comes back within the time that anybody waits."""
    pool, scheduler = front.engine.scheduler.pool, front.engine.scheduler
    until(lambda: pool.free == pool.blocks and not (scheduler.running or scheduler.waiting or front._queues))
    return len(set(pool._free)) == len(pool._free) == pool.blocks and not front._queues


# --- the engine alone --------------------------------------------------------------------------------


def answers(engine: Engine, generations: list[Generation]) -> list[list[int]]:
    for _ in range(5000):
        if not engine.step():
            break
    return [generation.made for generation in generations]


def prompt(length: int) -> list[int]:
    return torch.randint(96, (length,), generator=torch.Generator().manual_seed(length)).tolist()


@pytest.mark.parametrize("limits", [LIMITS, TIGHT], ids=["room", "tight"])
def test_greedy_answers_in_a_batch_are_those_of_the_model_alone(decoder: Decoder, limits: Limits) -> None:
    """Chunked, paged, batched, preempted: the same symbols as one request without any cache."""
    limits = Limits(**{name: getattr(limits, name) for name in limits.__slots__} | {"most_waiting": 99})
    engine = Engine(decoder, limits=limits)
    orders = [
        Order(prompt=prompt(length), max_tokens=most, temperature=0)
        for length, most in ((3, 20), (17, 9), (40, 24), (1, 30), (25, 1), (33, 31), (9, 12), (50, 14))
    ]
    made = answers(engine, [engine.submit(order) for order in orders])
    for order, tokens in zip(orders, made, strict=True):
        numbers = list(order.prompt)
        for token in tokens:
            scores = decoder(torch.tensor([numbers]))[0, -1]
            assert scores[token] > scores.max() - 1e-4  # the same symbol, or one that rounding cannot tell from it
            numbers.append(token)
        assert len(tokens) == order.max_tokens
    assert engine.scheduler.pool.free == limits.blocks
    assert (engine.scheduler.preemptions > 0) == (limits.blocks == TIGHT.blocks)


def test_an_answer_hangs_on_every_character_before_it(decoder: Decoder) -> None:
    """Without this, a test of greedy answers could not see a wrong block."""
    read = prompt(40)
    for place in (0, 9, 17, 33):
        other = [*read[:place], (read[place] + 1) % 96, *read[place + 1 :]]
        one, two = (decoder(torch.tensor([numbers]))[0, -1] for numbers in (read, other))
        assert (one - two).abs().max() > 0.05


def test_a_seed_draws_the_same_answer_in_any_company(decoder: Decoder) -> None:
    order = Order(prompt=prompt(7), max_tokens=12, temperature=1.3, seed=11)
    alone = Engine(decoder, limits=LIMITS)
    (first,) = answers(alone, [alone.submit(order)])
    crowd = Engine(decoder, limits=LIMITS)
    others = [crowd.submit(Order(prompt=prompt(n), max_tokens=20, temperature=1.3)) for n in (5, 30)]
    *rest, second = answers(crowd, [*others, crowd.submit(order)])
    assert first == second
    assert rest[0] != rest[1]


def test_no_step_is_larger_than_its_budget_and_slots(decoder: Decoder) -> None:
    engine = Engine(decoder, limits=Limits(slots=3, token_budget=10, blocks=40, block_tokens=8, context=128))
    generations = [engine.submit(Order(prompt=prompt(45), max_tokens=5)) for _ in range(7)]
    answers(engine, generations)
    assert max(step.prefill_tokens + step.decodes for step in engine.steps) == 10
    assert max(step.decodes for step in engine.steps) <= 3
    assert sum(step.prefill_tokens for step in engine.steps) == 7 * 45
    assert sum(step.decodes for step in engine.steps) == 7 * 4  # the first token of each comes with its prompt


def test_steps_keep_making_tokens_while_a_long_prompt_is_read(decoder: Decoder) -> None:
    engine = Engine(decoder, limits=Limits(slots=4, token_budget=8, blocks=40, block_tokens=8, context=128))
    early = engine.submit(Order(prompt=prompt(2), max_tokens=30))
    engine.step()
    late = engine.submit(Order(prompt=prompt(70), max_tokens=1))
    before = len(early.made)
    while not late.made:
        engine.step()
    assert len(early.made) - before == 10  # 70 tokens at 7 a step, beside one decode


def test_blocks_are_given_back_once_and_only_once() -> None:
    pool = BlockPool(blocks=5, block_tokens=4)
    mine = pool.take(2)
    assert mine is not None
    pool.give(mine)
    with pytest.raises(AssertionError, match="given back twice"):
        pool.give(mine)


def test_limits_that_cannot_work_are_refused(decoder: Decoder) -> None:
    with pytest.raises(ValueError, match="cannot hold one context of 128 tokens; it takes 16"):
        Engine(decoder, limits=Limits(blocks=15, block_tokens=8, context=128))
    with pytest.raises(ValueError, match="token_budget=3 is less than slots=4"):
        Scheduler(BlockPool(blocks=4, block_tokens=4), slots=4, token_budget=3)


def test_text_that_may_become_a_stop_string_is_not_sent_early() -> None:
    numbered = small_language_model.character_text.numbered
    generation = Generation(Order(prompt=[1], max_tokens=9, stop=("END", "E!")))
    said = [generation.accept(token, 0.0) for token in numbered("aENoEND")]
    assert [piece.text for piece in said] == ["a", "", "", "ENo", "", "", ""]
    assert [piece.finish_reason for piece in said] == [None] * 6 + ["stop"]
    short = Generation(Order(prompt=[1], max_tokens=3, stop=("END",)))
    assert [short.accept(token, 0.0).text for token in numbered("xEN")] == ["x", "", "EN"]


# --- over HTTP ---------------------------------------------------------------------------------------


def test_the_official_client_talks_to_it(served: tuple[Front, str], decoder: Decoder) -> None:
    with openai.OpenAI(base_url=f"{served[1]}/v1", api_key="none", timeout=PATIENCE_S, max_retries=0) as client:
        assert [model.id for model in client.models.list()] == ["tiny"]
        expected = small_language_model.greedy(decoder, "for x in y", tokens=6)
        whole = client.completions.create(**body())  # type: ignore[call-overload]
        assert whole.choices[0].text == expected
        assert whole.choices[0].finish_reason == "length"
        assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (10, 6)
        chunks = list(client.completions.create(**body(stream=True, stream_options={"include_usage": True})))  # type: ignore[call-overload]
        assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices) == expected
        assert chunks[-1].usage.total_tokens == 16
        chat = client.chat.completions.create(
            model="tiny", messages=[{"role": "user", "content": "while"}], max_completion_tokens=5, temperature=0
        )
        assert chat.choices[0].message.content == small_language_model.greedy(decoder, "while\n", tokens=5)
        with pytest.raises(openai.BadRequestError, match="context is 128 tokens; you asked for 310"):
            client.completions.create(model="tiny", prompt="x" * 10, max_tokens=300)
        with pytest.raises(openai.NotFoundError, match="'large' is not served here"):
            client.completions.create(model="large", prompt="x")


WRONG = {
    "no JSON": ("{", 400),
    "half a character": (b'{"prompt": "\xff"}', 400),
    "a list": ("[]", 400),
    "no model": ('{"prompt": "a"}', 400),
    "another model": ('{"model": "gpt", "prompt": "a"}', 404),
    "no prompt": ('{"model": "tiny"}', 400),
    "an empty prompt": ('{"model": "tiny", "prompt": ""}', 400),
    "two prompts": ('{"model": "tiny", "prompt": ["a", "b"]}', 400),
    "a prompt of numbers": ('{"model": "tiny", "prompt": [1, 2]}', 400),
    "no tokens": ('{"model": "tiny", "prompt": "a", "max_tokens": 0}', 400),
    "tokens in words": ('{"model": "tiny", "prompt": "a", "max_tokens": "many"}', 400),
    "true tokens": ('{"model": "tiny", "prompt": "a", "max_tokens": true}', 400),
    "too long": (json.dumps(body(prompt="x" * 123)), 400),
    "two answers": ('{"model": "tiny", "prompt": "a", "n": 2}', 400),
    "too hot": ('{"model": "tiny", "prompt": "a", "temperature": 3}', 400),
    "not a number": ('{"model": "tiny", "prompt": "a", "temperature": NaN}', 400),
    "a negative seed": ('{"model": "tiny", "prompt": "a", "seed": -1}', 400),
    "an empty stop": ('{"model": "tiny", "prompt": "a", "stop": [""]}', 400),
    "options in words": ('{"model": "tiny", "prompt": "a", "stream": true, "stream_options": "usage"}', 400),
    "very deep": ("[" * 100_000, 400),
    "very large": (" " * 1_000_001, 413),
}


def refused(answer: httpx.Response, status: int) -> dict[str, str]:
    assert answer.status_code == status
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert 10 < len(error["message"]) < 200
    assert "\n" not in error["message"]
    assert error["message"].endswith(".")
    return error


@pytest.mark.parametrize("name", WRONG)
def test_a_request_that_makes_no_sense_is_told_so_in_one_sentence(client: httpx.Client, name: str) -> None:
    content, status = WRONG[name]
    refused(client.post("/v1/completions", content=content), status)
    assert client.post("/v1/completions", json=body()).status_code == 200


@pytest.mark.parametrize(
    "messages", [None, [], "hello", [1], [{"role": "user"}], [{"role": "user", "content": [{"type": "image_url"}]}]]
)
def test_a_chat_without_text_is_refused(client: httpx.Client, messages: object) -> None:
    refused(client.post("/v1/chat/completions", json={"model": "tiny", "messages": messages}), 400)


def test_what_is_not_served_is_refused_in_the_same_form(client: httpx.Client) -> None:
    refused(client.get("/v1/embeddings"), 404)
    refused(client.get("/v1/completions"), 405)
    refused(client.get("/v1/models/gpt"), 404)
    assert client.get("/v1/models/tiny").json()["id"] == "tiny"
    assert client.get("/health").json() == {"status": "ok"}


def test_metrics_are_prometheus_text_and_add_up(client: httpx.Client) -> None:
    def read() -> dict[str, float]:
        rows = [line.split() for line in client.get("/metrics").text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in rows}

    before = read()
    client.post("/v1/completions", json=body(max_tokens=7))
    after = read()
    grown = {name: after[name] - before.get(name, 0) for name in after}
    assert grown["threeloops_generation_tokens_total"] == 7
    assert grown["threeloops_prompt_tokens_total"] == 10
    assert grown["threeloops_time_to_first_token_seconds_count"] == 1
    assert grown["threeloops_inter_token_latency_seconds_count"] == 6
    assert after["threeloops_kv_blocks_free"] == after["threeloops_kv_blocks_total"] == 64


async def stream(client: httpx.AsyncClient, *, leave_after: int | None = None, **changes: object) -> str:
    """Read a stream, to its end or for so many pieces."""
    text, pieces = "", 0
    async with client.stream("POST", "/v1/completions", json=body(stream=True, **changes)) as answer:
        assert answer.status_code == 200
        async for line in answer.aiter_lines():
            if line == "data: [DONE]":
                return text
            if line:
                text += json.loads(line.removeprefix("data: "))["choices"][0]["text"]
                pieces += 1
            if pieces == leave_after:
                return text
    raise AssertionError("the stream ended without its last line")


def test_two_hundred_streams_at_once_each_get_their_own_answer(served: tuple[Front, str], decoder: Decoder) -> None:
    front, url = served
    beginnings = ["for x in y", "def f(a):", "import this", "while True", "[1, 2, 3]"]
    expected = [small_language_model.greedy(decoder, text, tokens=8) for text in beginnings]

    async def crowd() -> list[str]:
        limits = httpx.Limits(max_connections=200)
        async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_S, limits=limits) as client:
            return await asyncio.gather(
                *(stream(client, prompt=beginnings[place % 5], max_tokens=8) for place in range(200))
            )

    assert ran(crowd()) == expected * 40
    assert all_free(front)


class Held(Decoder):
    """Takes a step only where one is needed, until it is let go."""

    def __init__(self) -> None:
        super().__init__(SIZES)
        self.begun, self.go = threading.Event(), threading.Event()
        self.needed: Callable[[], bool] = lambda: False

    def forward(self, *given: object, **named: object) -> torch.Tensor:  # type: ignore[override]
        self.begun.set()
        assert until(lambda: self.go.is_set() or self.needed())
        return super().forward(*given, **named)  # type: ignore[arg-type]


def until(holds: Callable[[], bool]) -> bool:
    return wall_clock.until(holds, limit_s=PATIENCE_S, step_s=0.005)


def wanted(front: Front) -> int:
    """Requests in the server that somebody still waits for."""
    scheduler = front.engine.scheduler
    return sum(not generation.cancelled for generation in [*scheduler.waiting, *scheduler.running])


def test_clients_that_vanish_leave_nothing_behind() -> None:
    """Twelve leave in the middle of a stream, ten before their first step, and what they asked for is not made:
    whoever comes late, the server makes no step but for those who read.
    """
    held = Held()

    async def crowd(front: Front, url: str) -> None:
        scheduler = front.engine.scheduler
        held.needed = lambda: any(len(each.made) < 5 for each in [*scheduler.waiting, *scheduler.running])
        limits = httpx.Limits(max_connections=60)
        async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_S, limits=limits) as client:
            await asyncio.gather(*(stream(client, leave_after=1 + place % 3, max_tokens=110) for place in range(12)))
            assert await asyncio.to_thread(until, lambda: front.vanished == 12)
            held.needed = lambda: False
            posts = [client.post("/v1/completions", json=body(max_tokens=110)) for _ in range(10)]
            waiting = [asyncio.create_task(post) for post in posts]
            assert await asyncio.to_thread(until, lambda: wanted(front) == 10)
            for task in waiting:
                task.cancel()
            found = await asyncio.gather(*waiting, return_exceptions=True)
            assert all(isinstance(error, asyncio.CancelledError) for error in found)

    with in_this_process(held.eval(), limits=LIMITS) as (front, url):
        ran(crowd(front, url))
        assert until(lambda: front.vanished == 22)
        made = front.engine.metrics.generation_tokens
        held.go.set()
        assert all_free(front)
        assert front.engine.metrics.generation_tokens <= made + LIMITS.slots  # the step that was held, and no other
        assert httpx.post(f"{url}/v1/completions", json=body(), timeout=PATIENCE_S).status_code == 200


def test_a_full_queue_turns_away_and_a_full_cache_does_not(decoder: Decoder) -> None:
    """While one is in its first step, two may wait and everybody else is told so. Nine blocks are too few for the
    three: requests are preempted and still answered.
    """
    held = Held()
    held.load_state_dict(decoder.state_dict())

    async def crowd(front: Front, url: str) -> list[httpx.Response]:
        limits = httpx.Limits(max_connections=60)
        async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_S, limits=limits) as client:

            def asked() -> asyncio.Task[httpx.Response]:
                return asyncio.create_task(client.post("/v1/completions", json=body(max_tokens=40)))

            first = asked()
            assert await asyncio.to_thread(until, held.begun.is_set)
            others = [asked() for _ in range(40)]
            assert await asyncio.to_thread(until, lambda: sum(other.done() for other in others) == 38)
            held.go.set()
            return await asyncio.gather(first, *others)

    with in_this_process(held.eval(), limits=TIGHT) as (front, url):
        found = ran(crowd(front, url))
        served = [answer for answer in found if answer.status_code == 200]
        turned_away = [answer for answer in found if answer.status_code != 200]
        assert (len(served), len(turned_away)) == (3, 38)
        assert front.engine.scheduler.preemptions > 0
        assert {answer.json()["choices"][0]["text"] for answer in served} == {
            small_language_model.greedy(decoder, "for x in y", tokens=40)
        }
        for answer in turned_away:
            assert refused(answer, 429)["code"] == "queue_full"
            assert answer.headers["retry-after"] == "1"
        assert all_free(front)


class Broken(Decoder):
    """Fails in its third step."""

    calls = 0

    def forward(self, *given: object, **named: object) -> torch.Tensor:  # type: ignore[override]
        self.calls += 1
        if self.calls == 3:
            raise RuntimeError("a bad multiplication")
        return super().forward(*given, **named)  # type: ignore[arg-type]


@pytest.mark.parametrize("streams", [False, True])
def test_a_model_that_fails_ends_its_requests_and_not_the_server(streams: bool) -> None:
    with (
        in_this_process(Broken(SIZES).eval(), limits=LIMITS) as (front, url),
        openai.OpenAI(base_url=f"{url}/v1", api_key="none", timeout=PATIENCE_S, max_retries=0) as client,
    ):
        with pytest.raises(openai.APIError, match="the model failed while it wrote this answer"):
            list(client.completions.create(**body(stream=streams)))  # type: ignore[call-overload]
        assert client.completions.create(**body()).usage.completion_tokens == 6  # type: ignore[call-overload]
        assert all_free(front)


def test_a_stopping_server_says_so(decoder: Decoder) -> None:
    engine = Engine(decoder, limits=LIMITS)
    engine.start()
    engine.stop()
    assert not engine.alive
    with pytest.raises(Refusal, match="shutting down") as refusal:
        engine.submit(Order(prompt=[1], max_tokens=1))
    assert refusal.value.status == 503


def test_only_this_machine_reaches_it(served: tuple[Front, str]) -> None:
    assert served[1].startswith("http://127.0.0.1:")
    assert running.uvicorn_server(served[0], 1).config.host == "127.0.0.1"
