"""What `site --serve` sends: text packed for a browser that can unpack it, everything else as it is."""

import gzip
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from threeloops.site import serve


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "index.html").write_text("<p>" + "word " * 500)
    (tmp_path / "python.zip").write_bytes(b"zip" * 500)
    with serve.server(tmp_path) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield serve.address(running)
        running.shutdown()


def fetched(address: str, *, takes: str) -> tuple[bytes, str]:
    request = urllib.request.Request(address, headers={"Accept-Encoding": takes})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
        return bytes(answer.read()), answer.headers.get("Content-Encoding", "")


def test_text_is_packed_for_whoever_can_unpack_it(shown: str) -> None:
    plain, how = fetched(shown, takes="identity")
    assert how == ""
    for address in (shown, f"{shown}index.html?q=1"):
        packed, how = fetched(address, takes="gzip, br")
        assert (how, gzip.decompress(packed)) == ("gzip", plain)
        assert len(packed) < len(plain) / 10
    assert fetched(f"{shown}python.zip", takes="gzip") == (b"zip" * 500, "")
