"""Canvas's API, asked with a token from the environment. Lists come page after page by the header Link; what Canvas had
no time for (403 or 429) is asked again after a while.

"Pagination" and "Throttling", Instructure, 2024, https://canvas.instructure.com/doc/api/file.pagination.html and
https://canvas.instructure.com/doc/api/file.throttling.html.

The token goes to the one host that was named, over TLS, and nowhere else: no redirect is followed.
"""

import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException, HTTPMessage
from typing import IO, Any
from urllib.parse import urlencode, urlsplit

from threeloops import wall_clock

TOKEN = "CANVAS_TOKEN"
HERE = ("127.0.0.1", "localhost", "::1")
A_PAGE = 100  # entries
ANSWER_S = 60.0
MOST_PAGES, MOST_BYTES = 1_000, 50_000_000
WHY = {
    401: f"the token in {TOKEN} is not known there, or has ended; make a new one under Account, Settings",
    403: "the token's owner may not do that in this course",
    404: "there is no such course or assignment, or the token's owner does not see it",
}
TOO_OFTEN = "it was asked too often for a while; give the same command again in some minutes"
THROTTLED = b"Rate Limit Exceeded"  # in a 403, or in a 429
WAITS_S = (2.0, 5.0, 10.0, 20.0)  # between tries of what was throttled, which Canvas has not looked at


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token is for the host that was named."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


class Canvas:
    """One Canvas, asked with one token."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        if parts.scheme != "https" and parts.hostname not in HERE:
            raise ValueError(f"url={url!r} must begin with https://: a token is not sent in the open")
        if not parts.hostname or parts.username or parts.query or parts.path.strip("/"):
            raise ValueError(f"url={url!r} must be the address of a Canvas alone, like https://school.instructure.com")
        if not re.fullmatch(r"[\x21-\x7e]+", token):
            raise ValueError(f"{TOKEN} must hold an access token, one word; make one under Account, Settings")
        self._base, self._token = f"{parts.scheme}://{parts.netloc}/api/v1/", token
        proxies = [urllib.request.ProxyHandler({})] if parts.hostname in HERE else []
        self._opener = urllib.request.build_opener(_NoRedirect, *proxies)

    def get(self, path: str) -> Any:
        """One object."""
        return self._object(self._base + path)

    def pages(self, path: str) -> list[dict[str, Any]]:
        """A list, as long as there is a next page."""
        found: list[dict[str, Any]] = []
        url = f"{self._base}{path}?per_page={A_PAGE}"
        for _ in range(MOST_PAGES):
            some, link = self._asked(url)
            if not isinstance(some, list) or not all(isinstance(one, dict) for one in some):
                raise ValueError(f"{urlsplit(url).netloc} answers with no list where one was asked; is it a Canvas?")
            found += some
            following = re.search(r'<([^<>]+)>\s*;\s*rel="?next"?', link)
            if not following:
                return found
            url = following[1]
            if not url.startswith(self._base):
                raise ValueError(f"Canvas names a next page on another host, {urlsplit(url).netloc}; nothing was sent")
        raise ValueError(f"Canvas names more than {MOST_PAGES:,} pages; nothing was sent")

    def post(self, path: str, fields: Mapping[str, str]) -> Any:
        """Send a form."""
        return self._object(self._base + path, urlencode(fields).encode())

    def _object(self, url: str, body: bytes | None = None) -> Any:
        found, _ = self._asked(url, body)
        if not isinstance(found, dict):
            raise ValueError(f"{urlsplit(url).netloc} answers with a list where one thing was asked; is it a Canvas?")
        return found

    def _asked(self, url: str, body: bytes | None = None) -> tuple[Any, str]:
        asked = urllib.request.Request(url, data=body, headers={"Authorization": f"Bearer {self._token}"})
        host = urlsplit(url).netloc
        for wait_s in (*WAITS_S, None):
            try:
                with self._opener.open(asked, timeout=ANSWER_S) as answer:
                    return json.loads(answer.read(MOST_BYTES)), answer.headers.get("Link", "")
            except urllib.error.HTTPError as error:
                throttled = _is_throttled(error)
                if not throttled or wait_s is None:
                    why = "it points to another address" if 300 <= error.code < 400 else "it has a fault of its own"
                    told = TOO_OFTEN if throttled else WHY.get(error.code, why)
                    raise ValueError(f"{host} answers {error.code}: {told}") from None
                wall_clock.pause(wait_s)
            except (OSError, HTTPException) as error:
                raise ValueError(f"{host} does not answer: {getattr(error, 'reason', error)}") from None
            except ValueError:
                raise ValueError(f"{host} answers with something else than JSON; is it a Canvas?") from None
        raise AssertionError  # the last try has no wait behind it


def _is_throttled(error: urllib.error.HTTPError) -> bool:
    """Was too much asked in a short time? Canvas answers 403 then, and says so."""
    with error:
        try:
            return error.code == 429 or (error.code == 403 and THROTTLED in error.read(4_096))
        except (OSError, HTTPException):
            return False


def token() -> str:
    """The access token of the environment.

    Raises:   ValueError when there is none
    """
    found = os.environ.get(TOKEN, "")
    if not found:
        raise ValueError(
            f"{TOKEN} is not set; make an access token in Canvas (Account, Settings) and give it to this command alone:"
            f" `{TOKEN}=… threeloops classroom canvas SET`"
        )
    return found
