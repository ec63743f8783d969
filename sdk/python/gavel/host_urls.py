"""`urllib.request` in a component: over `gavel.http`."""

from __future__ import annotations

import io
import urllib.request
from email.message import Message
from http.client import responses
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.response import addinfourl

from . import http
from .verdict import Unavailable

__all__ = ["install"]

# Headers of a connection, which is the host's.
_OF_THE_CONNECTION = ("connection", "host", "transfer-encoding")


class _Unreachable(URLError, Unavailable):
    """A URLError that makes the outcome `unavailable` if it leaves the reward."""


class _Busy(HTTPError, Unavailable):
    """An HTTPError that makes the outcome `unavailable` if it leaves the reward."""


class _Handler(urllib.request.HTTPHandler):
    """Opens `http` and `https` URLs. The other handlers still handle redirects,
    errors and passwords."""

    def http_open(self, req: urllib.request.Request) -> Any:
        timeout = getattr(req, "timeout", None)
        [answer] = http.exchange(
            [
                http.Request(
                    req.get_method(),
                    req.full_url.partition("#")[0],
                    {name: value for name, value in req.header_items() if name.lower() not in _OF_THE_CONNECTION},
                    _bytes(req.data),
                    timeout=timeout if isinstance(timeout, (int, float)) else None,
                    follow_redirects=False,
                )
            ]
        )
        if isinstance(answer, Unavailable):
            raise _Unreachable(answer) from answer
        if isinstance(answer, Exception):
            raise URLError(answer) from answer  # type: ignore[arg-type]
        headers = Message()
        for name in answer.headers:
            for value in answer.headers.get_all(name):
                headers[name] = value
        response = addinfourl(io.BytesIO(answer.content), headers, req.full_url, answer.status)
        response.msg = response.reason = responses.get(answer.status, "")  # type: ignore[attr-defined]
        return response

    https_open = http_open
    https_request = urllib.request.HTTPHandler.http_request


class _Errors(urllib.request.HTTPDefaultErrorHandler):
    def http_error_default(self, req: Any, fp: Any, code: int, msg: str, hdrs: Any) -> Any:
        raise (_Busy if http.may_pass(code) else HTTPError)(req.full_url, code, msg, hdrs, fp)


def _bytes(data: Any) -> bytes:
    if data is None:
        return b""
    if hasattr(data, "read"):
        return data.read()
    return bytes(data) if isinstance(data, (bytes, bytearray, memoryview)) else b"".join(data)


def install() -> None:
    """Makes them the default handlers of every opener."""
    urllib.request.HTTPHandler = _Handler  # type: ignore[misc]
    urllib.request.HTTPDefaultErrorHandler = _Errors  # type: ignore[misc]
