"""Show the pages: from this machine to this machine, until Ctrl-C."""

import functools
import http.server
import webbrowser
from pathlib import Path

HOST = "127.0.0.1"


class Files(http.server.SimpleHTTPRequestHandler):
    """Files, and no line for each."""

    # what a browser insists on, and what not every machine's own table knows
    extensions_map = {  # noqa: RUF012
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


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
