"""Show the pages: from this machine to this machine, until Ctrl-C."""

import functools
import gzip
import http.server
import io
import webbrowser
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO

HOST = "127.0.0.1"
LOST = "404.html"
PACKED = {".html", ".css", ".js", ".json", ".svg", ".txt", ".xml"}


class Files(http.server.SimpleHTTPRequestHandler):
    """Files, and no line for each."""

    # what a browser insists on, and what not every machine's own table knows
    extensions_map = {  # noqa: RUF012
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
        ".epub": "application/epub+zip",
    }

    def send_head(self) -> io.BytesIO | BinaryIO | None:
        """What is text is packed, as web hosts do, for a browser that can unpack it."""
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() and self.path.partition("?")[0].endswith("/") else path
        takes = "gzip" in self.headers.get("Accept-Encoding", "")
        if path.suffix not in PACKED or not takes or not path.is_file():
            return super().send_head()
        packed = _packed(path, path.stat().st_mtime_ns)
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(packed)))
        self.send_header("Vary", "Accept-Encoding")
        self.send_header("Last-Modified", self.date_time_string(path.stat().st_mtime))
        self.end_headers()
        return io.BytesIO(packed)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What is not there is answered with the page that says so, as web hosts do."""
        lost = Path(self.directory) / LOST
        if code != HTTPStatus.NOT_FOUND or not lost.is_file():
            super().send_error(code, message, explain)
            return
        told = lost.read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(told)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@functools.lru_cache(maxsize=256)
def _packed(path: Path, _as_it_is: int) -> bytes:
    return gzip.compress(path.read_bytes(), mtime=0)


def server(folder: Path) -> http.server.ThreadingHTTPServer:
    """A server of this folder on a free port of this machine; not yet running."""
    return http.server.ThreadingHTTPServer((HOST, 0), functools.partial(Files, directory=str(folder)))


def address(running: http.server.ThreadingHTTPServer) -> str:
    """Where to look."""
    return f"http://{HOST}:{running.server_port}/"


def serve(folder: Path, *, browser: bool) -> None:
    """Show a folder of pages until somebody presses Ctrl-C."""
    with server(folder) as running:
        print(f"The pages are at {address(running)}; Ctrl-C ends.", flush=True)
        if browser:
            webbrowser.open(address(running))
        running.serve_forever()
