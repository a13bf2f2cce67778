"""Errors: every refusal is one sentence, in the form in which the official client expects it.

>>> Refusal.bad_request("max_tokens is 0; ask for at least 1", param="max_tokens").body()["error"]["message"]
'max_tokens is 0; ask for at least 1'
"""

from typing import Any


class Refusal(Exception):
    """A request that is not served, and why. `status` is HTTP's; `code` is what programs look at."""

    def __init__(self, message: str, *, status: int, kind: str, param: str | None = None, code: str | None = None):
        super().__init__(message)
        self.status, self.kind, self.param, self.code = status, kind, param, code

    def body(self) -> dict[str, Any]:
        """The error object of OpenAI's API."""
        return {"error": {"message": str(self), "type": self.kind, "param": self.param, "code": self.code}}

    @classmethod
    def bad_request(cls, message: str, *, param: str | None = None, code: str | None = None) -> "Refusal":
        """The request can never be served as it stands: do not send it again."""
        return cls(message, status=400, kind="invalid_request_error", param=param, code=code)

    @classmethod
    def too_many(cls, waiting: int) -> "Refusal":
        """Served later, perhaps: send it again after a pause."""
        return cls(
            f"{waiting} requests wait already, and no more are let in; try again after a pause.",
            status=429,
            kind="rate_limit_error",
            code="queue_full",
        )

    @classmethod
    def failed(cls, message: str, *, status: int = 500) -> "Refusal":
        """Our fault, not the request's."""
        return cls(message, status=status, kind="server_error", code="engine_failed")
