"""Running: the server as a process of its own, and how a notebook starts one and ends it.

It listens on the loopback address only: nobody outside this machine can reach it.
"""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict

import httpx
import torch
import uvicorn

from threeloops import wall_clock
from threeloops.measure.product_loop.character_decoder import Decoder
from threeloops.measure.product_loop.server.api_front import Front
from threeloops.measure.product_loop.server.engine import Limits

LOOPBACK = "127.0.0.1"
START_LIMIT_S = 240.0  # long enough to train the model first
STOP_LIMIT_S = 10.0
# Set before torch is loaded: threads that have nothing to do sleep, in place of turning in circles on a core that the
# clients need.
QUIET_THREADS = {"OMP_WAIT_POLICY": "PASSIVE", "OMP_NUM_THREADS": "1"}
# The engine and the HTTP front are threads of one Python, and one of them runs at a time. By default whoever has the
# interpreter keeps it for 5 ms, which is longer than a step.
SWITCH_S = 0.0002
MODULE = "threeloops.measure.product_loop.server"


class ServerProcess:
    """A server that another process runs: `url` for clients, `stop()` at the end."""

    def __init__(self, process: "subprocess.Popen[str]", port: int) -> None:
        self._process, self.port = process, port
        self.url = f"http://{LOOPBACK}:{port}"

    def metrics(self) -> dict[str, float]:
        """What /metrics says now, without the common beginning of the names."""
        lines = httpx.get(f"{self.url}/metrics", timeout=STOP_LIMIT_S).text.splitlines()
        rows = [line.removeprefix("threeloops_").split() for line in lines if not line.startswith("#")]
        return {name: float(value) for name, value in rows}

    def settled(self) -> dict[str, float]:
        """The metrics once nothing runs or waits any more, or after ten seconds."""
        found: dict[str, float] = {}

        def idle() -> bool:
            found.update(self.metrics())
            return not found["requests_running"] + found["requests_waiting"]

        wall_clock.until(idle, limit_s=STOP_LIMIT_S, step_s=0.02)
        return found

    def stop(self) -> None:
        """Ask it to end, and see to it that it does."""
        self._process.terminate()
        try:
            self._process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_LIMIT_S)


def start(model: str = "target", **limits: int) -> ServerProcess:
    """Start `python -m threeloops.measure.product_loop.server` on a free port, and wait until it answers.

    Raises:   RuntimeError with its last words if it ends, TimeoutError if it does not answer in four minutes
    """
    port = free_port()
    words = [f"--{name.replace('_', '-')}={value}" for name, value in limits.items()]
    process = subprocess.Popen(
        [sys.executable, "-m", MODULE, f"--model={model}", f"--port={port}", *words],
        env=os.environ | QUIET_THREADS,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    server = ServerProcess(process, port)
    deadline = time.monotonic() + START_LIMIT_S
    while process.poll() is None:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{server.url}/health", timeout=1.0).status_code == 200:
                threading.Thread(target=_drain, args=(process,), daemon=True).start()
                return server
        if time.monotonic() > deadline:
            server.stop()
            raise TimeoutError(f"the server did not answer within {START_LIMIT_S:g} s")
        wall_clock.pause(0.05)
    assert process.stderr
    raise RuntimeError(f"the server ended as it began: {process.stderr.read()[-500:]}")


def _drain(process: "subprocess.Popen[str]") -> None:
    """Read what it says, so that a full pipe never stops it."""
    assert process.stderr
    for _ in process.stderr:
        pass


def free_port() -> int:
    with socket.socket() as door:
        door.bind((LOOPBACK, 0))
        port: int = door.getsockname()[1]
        return port


def uvicorn_server(front: Front, port: int) -> uvicorn.Server:
    """uvicorn as we set it: loopback, no access log, connections that stay idle for 5 s are closed."""
    return uvicorn.Server(
        uvicorn.Config(front.app, host=LOOPBACK, port=port, log_level="error", timeout_graceful_shutdown=3)
    )


def serve(decoder: Decoder, *, model: str, port: int, limits: Limits) -> None:
    """Serve until somebody ends the process."""
    torch.set_num_threads(1)
    sys.setswitchinterval(SWITCH_S)
    print(f"serving {model} on http://{LOOPBACK}:{port} with {asdict(limits)}", flush=True)
    uvicorn_server(Front(decoder, model=model, limits=limits), port).run()
