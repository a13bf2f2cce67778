"""API front: HTTP on one side, the engine's thread on the other.

Each request has a queue into which the engine's pieces are put; whoever writes the answer takes them out. Beside every
writer somebody watches whether the client is still there.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from threeloops.measure.product_loop.character_decoder import Decoder
from threeloops.measure.product_loop.server import forms
from threeloops.measure.product_loop.server.engine import Delivery, Engine, Limits
from threeloops.measure.product_loop.server.errors import Refusal
from threeloops.measure.product_loop.server.generation import Generation, Piece
from threeloops.measure.product_loop.server.metrics import prometheus_text

MOST_BODY_BYTES = 1_000_000
BODY_LIMIT_S = 10.0  # a client that takes longer to send its request is not waited for


class Front:
    """The HTTP side of one engine."""

    def __init__(self, decoder: Decoder, *, model: str, limits: Limits) -> None:
        self.model = model
        self.engine = Engine(decoder, limits=limits, deliver=self._deliver)
        self.refused: Counter[int] = Counter()  # by HTTP status
        self.vanished = 0
        self._queues: dict[Generation, asyncio.Queue[Piece]] = {}
        self.app = Starlette(
            routes=[
                Route("/v1/completions", self.completions, methods=["POST"]),
                Route("/v1/chat/completions", self.chat, methods=["POST"]),
                Route("/v1/models", self.models),
                Route("/v1/models/{name}", self.one_model),
                Route("/health", self.health),
                Route("/metrics", self.metrics),
            ],
            exception_handlers={Refusal: self._refuse, HTTPException: self._refuse_http, Exception: self._refuse_any},
            lifespan=self._life,
        )

    @asynccontextmanager
    async def _life(self, app: Starlette) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        self.engine.start()
        yield
        await asyncio.to_thread(self.engine.stop)

    # --- from the engine's thread to the writers -----------------------------------------------

    def _deliver(self, pieces: list[Delivery]) -> None:
        self._loop.call_soon_threadsafe(self._hand_out, pieces)

    def _hand_out(self, pieces: list[Delivery]) -> None:
        for generation, piece in pieces:
            if generation in self._queues:
                self._queues[generation].put_nowait(piece)

    async def pieces(self, generation: Generation) -> AsyncIterator[Piece]:
        """What the engine makes of a request, piece by piece, to the last."""
        while True:
            piece = await self._queues[generation].get()
            if piece.finish_reason == "error":
                raise Refusal.failed(f"the model failed while it wrote this answer ({piece.text}); ask again.")
            yield piece
            if piece.finish_reason:
                return

    def forget(self, generation: Generation, *, finished: bool) -> None:
        """The answer is written, or nobody reads it any more."""
        del self._queues[generation]
        if not finished:
            self.vanished += 1
            self.engine.cancel(generation)

    # --- routes --------------------------------------------------------------------------------

    async def completions(self, request: Request) -> Response:
        return await self._answer(request, chat=False)

    async def chat(self, request: Request) -> Response:
        return await self._answer(request, chat=True)

    async def _answer(self, request: Request, *, chat: bool) -> Response:
        asked = forms.read_order(forms.read_json(await _body(request)), chat=chat, model=self.model)
        generation = self.engine.submit(asked.order)
        self._queues[generation] = asyncio.Queue()
        answer = forms.Answer(generation, chat=chat, model=self.model)
        return WatchedAnswer(self, answer, stream=asked.stream, usage=asked.stream_usage)

    async def models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [self._described()]})

    async def one_model(self, request: Request) -> Response:
        if request.path_params["name"] != self.model:
            raise forms.unknown_model(request.path_params["name"], self.model)
        return JSONResponse(self._described())

    def _described(self) -> dict[str, Any]:
        context = self.engine.limits.context
        return {"id": self.model, "object": "model", "created": 0, "owned_by": "three-loops", "max_model_len": context}

    async def health(self, request: Request) -> Response:
        alive = self.engine.alive
        return JSONResponse({"status": "ok" if alive else "the engine has stopped"}, status_code=200 if alive else 503)

    async def metrics(self, request: Request) -> Response:
        metrics, scheduler = self.engine.metrics, self.engine.scheduler
        return PlainTextResponse(prometheus_text(metrics, scheduler, refused=self.refused, vanished=self.vanished))

    # --- refusals ------------------------------------------------------------------------------

    async def _refuse(self, request: Request, refusal: Exception) -> Response:
        assert isinstance(refusal, Refusal)
        self.refused[refusal.status] += 1
        headers = {"Retry-After": "1"} if refusal.status == 429 else None
        return JSONResponse(refusal.body(), status_code=refusal.status, headers=headers)

    async def _refuse_http(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        message = f"{request.method} {request.url.path} is not served here ({error.detail})."
        return await self._refuse(request, Refusal(message, status=error.status_code, kind="invalid_request_error"))

    async def _refuse_any(self, request: Request, error: Exception) -> Response:
        return await self._refuse(request, Refusal.failed("the server made a mistake; its log says which."))


class WatchedAnswer(Response):
    """Writes an answer while it watches the client: whoever hangs up has their request cancelled at once."""

    def __init__(self, front: Front, answer: forms.Answer, *, stream: bool, usage: bool) -> None:
        self.front, self.answer, self.stream, self.usage = front, answer, stream, usage
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        writer = asyncio.ensure_future(self._streamed(send) if self.stream else self._whole(scope, receive, send))
        watcher = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait({writer, watcher}, return_when=asyncio.FIRST_COMPLETED)
            if writer.done():
                writer.result()
        finally:
            generation = self.answer.generation
            self.front.forget(generation, finished=writer.done())
            writer.cancel()
            watcher.cancel()

    async def _whole(self, scope: Scope, receive: Receive, send: Send) -> None:
        pieces = [piece async for piece in self.front.pieces(self.answer.generation)]
        text, reason = "".join(piece.text for piece in pieces), pieces[-1].finish_reason
        await JSONResponse(self.answer.whole(text, reason or "length"))(scope, receive, send)

    async def _streamed(self, send: Send) -> None:
        """Server-sent events: a line `data: {...}` and an empty one for each piece, `data: [DONE]` at the end."""
        headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        first = True
        try:
            async for piece in self.front.pieces(self.answer.generation):
                if piece.text or piece.finish_reason:
                    await _event(send, self.answer.chunk(piece.text, piece.finish_reason, first=first))
                    first = False
            if self.usage:
                await _event(send, self.answer.usage_chunk())
        except Refusal as refusal:  # the status has been sent; the error can only follow in the stream
            await _event(send, refusal.body())
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})


async def _event(send: Send, body: dict[str, Any]) -> None:
    line = f"data: {json.dumps(body)}\n\n".encode()
    await send({"type": "http.response.body", "body": line, "more_body": True})


async def _gone(receive: Receive) -> None:
    """Returns when the client has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _body(request: Request) -> bytes:
    """The whole body, if it is neither too large nor too slow."""
    raw = b""
    try:
        async with asyncio.timeout(BODY_LIMIT_S):
            async for part in request.stream():
                raw += part
                if len(raw) > MOST_BODY_BYTES:
                    raise Refusal(
                        f"the body is larger than {MOST_BODY_BYTES:,} bytes; send less.",
                        status=413,
                        kind="invalid_request_error",
                    )
    except TimeoutError as error:
        message = f"the body took longer than {BODY_LIMIT_S:g} seconds; send it faster."
        raise Refusal(message, status=408, kind="invalid_request_error") from error
    return raw
