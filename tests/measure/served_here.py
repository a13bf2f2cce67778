"""The server in this process, for tests that look inside it."""

import contextlib
import threading
from collections.abc import Iterator

from threeloops import wall_clock
from threeloops.measure.product_loop.character_decoder import Decoder
from threeloops.measure.product_loop.server import running
from threeloops.measure.product_loop.server.api_front import Front
from threeloops.measure.product_loop.server.engine import Limits


@contextlib.contextmanager
def in_this_process(
    decoder: Decoder, *, model: str = "tiny", limits: Limits | None = None
) -> Iterator[tuple[Front, str]]:
    """A server in a thread of this process, and its URL: tests look inside the engine while it runs."""
    front = Front(decoder, model=model, limits=limits or Limits())
    port = running.free_port()
    server = running.uvicorn_server(front, port)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wall_clock.until(lambda: server.started or not thread.is_alive(), limit_s=running.START_LIMIT_S, step_s=0.01)
    if not server.started:
        raise TimeoutError("the server did not begin")
    try:
        yield front, f"http://{running.LOOPBACK}:{port}"
    finally:
        server.should_exit = True
        thread.join(running.STOP_LIMIT_S)
