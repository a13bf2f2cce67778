"""The book without a network: what a browser may keep of it, by the hashes of one edition, and how it is called there.

What keeps it is static/service_worker.js. Source: https://www.w3.org/TR/service-workers/, https://www.w3.org/TR/appmanifest/
"""

import hashlib
import json
from pathlib import Path

WORKER, PAGE = "offline.js", "offline.html"
MANIFEST = "manifest.webmanifest"
# What is a book by itself, and what nobody but the build reads.
LEFT_OUT = (".pdf", ".epub", ".inv")
ICON = "_static/loops.svg"


def write(pages: Path, title: str) -> None:
    """Write the service worker of this edition, and the manifest, beside built pages."""
    made = pages / "_static" / "service_worker.js"
    program = made.read_text(encoding="utf-8")
    made.unlink()
    names = {
        "name": title,
        "short_name": title,
        "start_url": ".",
        "display": "minimal-ui",
        "icons": [{"src": ICON, "sizes": "any", "type": "image/svg+xml"}],
    }
    (pages / MANIFEST).write_text(json.dumps(names), encoding="utf-8")
    told = json.dumps(listed(pages), separators=(",", ":"))
    (pages / WORKER).write_text(f"const BOOK = {told};\n{program}", encoding="utf-8")


def listed(pages: Path) -> dict[str, object]:
    """Every file that belongs to the book, with its bytes and its SHA-256, and the name of the edition that they are.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "index.html").write_text("one")
    ...     first, again = listed(Path(folder)), listed(Path(folder))
    ...     _ = (Path(folder) / "index.html").write_text("two")
    ...     second = listed(Path(folder))
    >>> first == again, first["edition"] == second["edition"], first["files"]["index.html"][0]
    (True, False, 3)
    """
    files = {}
    for path in sorted(pages.rglob("*")):
        name = path.relative_to(pages).as_posix()
        if path.is_file() and path.suffix not in LEFT_OUT and name != WORKER:
            content = path.read_bytes()
            files[name] = (len(content), hashlib.sha256(content).hexdigest())
    return {"edition": hashlib.sha256(json.dumps(files).encode()).hexdigest()[:16], "files": files}
