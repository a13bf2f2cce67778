"""Forms: the bodies of OpenAI's API, read into orders and written from answers.

>>> order, stream, usage = read_order({"model": "m", "prompt": "ab", "max_tokens": 3}, chat=False, model="m")
>>> len(order.prompt), order.max_tokens, stream, usage
(2, 3, False, False)
"""

import itertools
import json
from typing import Any, NamedTuple

from threeloops import wall_clock
from threeloops.measure.product_loop import character_text
from threeloops.measure.product_loop.server.errors import Refusal
from threeloops.measure.product_loop.server.generation import Generation, Order

DEFAULT_TOKENS = 16  # as /v1/completions has it
MOST_STOPS, HOTTEST = 4, 2.0
# What a client may ask of other servers; anything but these values would silently be something else here.
ONLY = {"n": 1, "best_of": 1, "echo": False, "logprobs": None, "tools": None, "top_p": 1, "suffix": None}
_numbers = itertools.count(1)


class Asked(NamedTuple):
    """A body that was read."""

    order: Order
    stream: bool
    stream_usage: bool


def read_json(raw: bytes) -> dict[str, Any]:
    """The body as an object, or a refusal that says where it breaks."""
    try:
        body = json.loads(raw)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal.bad_request(f"the body is no JSON: {error}.") from error
    if not isinstance(body, dict):
        raise Refusal.bad_request(f"the body is a JSON {type(body).__name__}; it must be an object.")
    return body


def read_order(body: dict[str, Any], *, chat: bool, model: str) -> Asked:
    """What a body asks for, every field checked."""
    _right_model(body, model)
    for name, only in ONLY.items():
        if body.get(name) not in (None, only):
            raise Refusal.bad_request(
                f"{name}={json.dumps(body[name])} is not supported here; leave it out.", param=name
            )
    text = _chat_text(body) if chat else _prompt_text(body)
    options = body.get("stream_options") or {}
    if not isinstance(options, dict):
        raise Refusal.bad_request("stream_options must be an object.", param="stream_options")
    order = Order(
        prompt=character_text.numbered(text),
        max_tokens=_whole(body, "max_completion_tokens" if body.get("max_completion_tokens") else "max_tokens"),
        temperature=_temperature(body),
        stop=_stops(body),
        seed=_whole(body, "seed", least=0) if body.get("seed") is not None else None,
    )
    return Asked(order, bool(body.get("stream")), bool(options.get("include_usage")))


def _right_model(body: dict[str, Any], model: str) -> None:
    if not isinstance(body.get("model"), str):
        raise Refusal.bad_request("model is missing; name the one you want, as /v1/models lists it.", param="model")
    if body["model"] != model:
        raise unknown_model(body["model"], model)


def unknown_model(asked: str, model: str) -> Refusal:
    return Refusal(
        f"the model {asked!r} is not served here; {model!r} is.",
        status=404,
        kind="invalid_request_error",
        param="model",
        code="model_not_found",
    )


def _prompt_text(body: dict[str, Any]) -> str:
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str) or not prompt:
        raise Refusal.bad_request("prompt must be one text of at least one character.", param="prompt")
    return prompt


def _chat_text(body: dict[str, Any]) -> str:
    """A chat as one text. Our model never saw a chat, so its template is a line for each message."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refusal.bad_request("messages must be a list of at least one message.", param="messages")
    texts = [_message_text(message, place) for place, message in enumerate(messages)]
    if not any(texts):
        raise Refusal.bad_request("every message is empty; one needs a character.", param="messages")
    return "".join(f"{text}\n" for text in texts)


def _message_text(message: Any, place: int) -> str:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) else None for part in content]
        content = "".join(map(str, parts)) if all(isinstance(part, str) for part in parts) else None
    if not isinstance(content, str):
        raise Refusal.bad_request(f"messages[{place}].content must be text.", param="messages")
    return content


def _whole(body: dict[str, Any], name: str, least: int = 1) -> int:
    value = body.get(name) if body.get(name) is not None else DEFAULT_TOKENS
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**63:
        raise Refusal.bad_request(
            f"{name} is {json.dumps(value)}; it must be a whole number of at least {least}.", param=name
        )
    return value


def _temperature(body: dict[str, Any]) -> float:
    value = body.get("temperature") if body.get("temperature") is not None else 1.0
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= HOTTEST:
        raise Refusal.bad_request(
            f"temperature is {json.dumps(value)}; it must lie between 0 and {HOTTEST:g}.", param="temperature"
        )
    return float(value)


def _stops(body: dict[str, Any]) -> tuple[str, ...]:
    stop = body.get("stop") or []
    stops = [stop] if isinstance(stop, str) else stop
    if not isinstance(stops, list) or len(stops) > MOST_STOPS or not all(isinstance(s, str) and s for s in stops):
        raise Refusal.bad_request(f"stop must be a text or a list of at most {MOST_STOPS} texts.", param="stop")
    return tuple(stops)


class Answer:
    """The answer to one order in the API's form, whole or chunk by chunk."""

    def __init__(self, generation: Generation, *, chat: bool, model: str) -> None:
        self.generation, self.chat = generation, chat
        kind, prefix = ("chat.completion", "chatcmpl") if chat else ("text_completion", "cmpl")
        self._head = {"id": f"{prefix}-{next(_numbers)}", "created": int(wall_clock.now_s()), "model": model}
        self._kind = kind

    def whole(self, text: str, finish_reason: str) -> dict[str, Any]:
        said = {"message": {"role": "assistant", "content": text}} if self.chat else {"text": text}
        choice = {"index": 0, **said, "finish_reason": finish_reason, "logprobs": None}
        return {**self._head, "object": self._kind, "choices": [choice], "usage": self.usage()}

    def chunk(self, text: str, finish_reason: str | None, *, first: bool) -> dict[str, Any]:
        role = {"role": "assistant"} if first else {}
        said = {"delta": {**role, "content": text}} if self.chat else {"text": text}
        return self._chunk([{"index": 0, **said, "finish_reason": finish_reason, "logprobs": None}])

    def usage_chunk(self) -> dict[str, Any]:
        return {**self._chunk([]), "usage": self.usage()}

    def usage(self) -> dict[str, int]:
        prompt, made = len(self.generation.order.prompt), len(self.generation.made)
        return {"prompt_tokens": prompt, "completion_tokens": made, "total_tokens": prompt + made}

    def _chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {**self._head, "object": "chat.completion.chunk" if self.chat else self._kind, "choices": choices}
