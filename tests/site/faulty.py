"""A server of the pages that fails as networks and hosts do: a file is missing, damaged, cut off in the middle with or
without its length, stops coming, or comes when all others are there.
"""

import functools
import http.server
import threading
from io import BufferedIOBase
from pathlib import Path

from threeloops.site import serve

LATE_S = 6  # longer than all other files take


class Server(http.server.ThreadingHTTPServer):
    """Pages on a free port; `faults` says by name how a file fails."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.faults: dict[str, str] = {}
        self.down = False  # whether nothing is answered at all
        self.over = threading.Event()  # until then, what has stopped coming stays so
        super().__init__((serve.HOST, 0), _Files)

    def finish_request(self, request: object, client_address: object) -> None:
        functools.partial(_Files, directory=str(self.folder))(request, client_address, self)  # type: ignore[arg-type]

    def handle_error(self, request: object, client_address: object) -> None:
        """Browsers leave when they have enough; nothing to print."""


class _Files(serve.Files):
    server: Server

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def do_GET(self) -> None:
        name = self.path.partition("?")[0].rpartition("/")[2]
        kind = self.server.faults.get(name)
        path = Path(self.translate_path(self.path))
        if self.server.down:
            self.close_connection = True
        elif kind is None:
            super().do_GET()
        elif kind == "missing":
            self.send_error(404)
        elif kind == "late":
            self.server.over.wait(LATE_S)
            super().do_GET()
        else:
            self._fail(kind, path.read_bytes(), self.wfile)

    def _fail(self, kind: str, content: bytes, into: BufferedIOBase) -> None:
        middle = len(content) // 2
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(self.path))
        if kind != "short":
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        changed = bytes([content[middle] ^ 0xFF]) + content[middle + 1 :] if kind == "damaged" else b""
        into.write(content[:middle] + changed)
        into.flush()
        if kind == "stalled":
            self.server.over.wait()
