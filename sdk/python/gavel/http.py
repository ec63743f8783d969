"""Asking servers over HTTP.

The run's configuration grants servers (`grant = { http = ["https://judge.example"] }`);
`plugin.toml` declares the import (`imports = ["http"]`).

    from gavel import http

    response = http.post("https://judge.example/score", json={"text": text}, timeout=10)
    score = response.raise_for_status().json()["score"]
    responses = http.send_all([http.Request("GET", url) for url in urls])    # all at once: one wait

`urllib.request` asks the same way.
"""

from __future__ import annotations

import json as json_module
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Union
from urllib.parse import urljoin, urlsplit

from .refusal import InvalidRequest, Refused
from .verdict import Unavailable

__all__ = [
    "Headers",
    "InvalidRequest",
    "Refused",
    "Request",
    "Response",
    "exchange",
    "get",
    "post",
    "request",
    "send",
    "send_all",
]

MAX_REDIRECTS = 10


class Headers(Mapping[str, str]):
    """Headers by name; names ignore case. The values of a header that occurs more
    than once are joined by a comma."""

    def __init__(self, headers: Mapping[str, str] | Iterable[tuple[str, str]] = ()) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in headers.items() if isinstance(headers, Mapping) else headers:
            self._values.setdefault(name.lower(), []).append(value)

    def __getitem__(self, name: str) -> str:
        return ", ".join(self._values[name.lower()])

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Headers({dict(self)!r})"

    def get_all(self, name: str) -> list[str]:
        """Every value of the header."""
        return list(self._values.get(name.lower(), ()))


@dataclass
class Request:
    """A request to a server."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    data: bytes | str = b""
    """The body. A text is sent in UTF-8."""
    json: Any = None
    """The body as JSON, in place of `data`."""
    timeout: float | None = None
    """The most seconds until the whole response arrives. Without it, only the
    call's deadline ends the wait."""
    follow_redirects: bool = True
    """Whether a redirect is followed. Each new URL needs a grant too."""

    def body(self) -> bytes:
        """The bytes that are sent."""
        if self.json is not None:
            return json_module.dumps(self.json).encode()
        return self.data.encode() if isinstance(self.data, str) else bytes(self.data)


class Response:
    """A server's answer."""

    def __init__(
        self,
        status: int = 200,
        content: bytes | str = b"",
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        url: str = "",
    ) -> None:
        self.status = status
        self.content: bytes = content.encode() if isinstance(content, str) else content
        """The body."""
        self.headers = Headers(headers)
        self.url = url
        """The URL that answered, after redirects."""

    def __repr__(self) -> str:
        return f"<Response {self.status} of {self.url}>"

    @property
    def ok(self) -> bool:
        """Whether the status is one of success."""
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """The body as text, in the charset of `content-type` or else UTF-8.
        Bytes that are not characters there become U+FFFD."""
        charset = re.search(r'charset="?([^\s";]+)', self.headers.get("content-type", ""), re.IGNORECASE)
        try:
            return self.content.decode(charset[1] if charset else "utf-8", "replace")
        except LookupError:
            return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body read as JSON; raises ValueError if it is not JSON."""
        return json_module.loads(self.content)

    def raise_for_status(self) -> Response:
        """The response itself, if its status is not an error.

        Raises `gavel.Unavailable` where another attempt may help (408, 425, 429
        and from 500), and `Refused` for other errors.
        """
        if self.status < 400:
            return self
        said = " ".join(self.text[:200].split())
        words = f"{self.url} answered {self.status}" + (f": {said}" if said else "")
        raise Unavailable(words) if may_pass(self.status) else Refused(words)


def may_pass(status: int) -> bool:
    """Whether another attempt may help after this error."""
    return status in (408, 425, 429) or status >= 500


Answer = Union[Response, InvalidRequest, Refused, Unavailable]


def get(url: str, *, headers: Mapping[str, str] | None = None, timeout: float | None = None) -> Response:
    """Asks for a URL and waits for the response. Raises as `send` does."""
    return send(Request("GET", url, headers or {}, timeout=timeout))


def post(
    url: str,
    *,
    json: Any = None,
    data: bytes | str = b"",
    headers: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> Response:
    """Sends a body to a URL and waits for the response. Raises as `send` does."""
    return send(Request("POST", url, headers or {}, data, json, timeout))


def request(method: str, url: str, **options: Any) -> Response:
    """Sends a request of any method; `options` are fields of `Request`."""
    return send(Request(method, url, **options))


def send(request: Request) -> Response:
    """Sends a request and waits for the response, whatever its status.

    Raises `gavel.Unavailable` where the server does not answer (when it leaves
    the reward, the outcome is `unavailable`), `Refused` where no grant covers
    the request, and `InvalidRequest`.
    """
    return send_all([request])[0]


def send_all(requests: Sequence[Request]) -> list[Response]:
    """Sends all requests at once and waits for the last response.

    Raises the first error, as `send` does.
    """
    answers = exchange(requests)
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return [answer for answer in answers if isinstance(answer, Response)]


def exchange(requests: Sequence[Request]) -> list[Answer]:
    """Sends all requests at once. Returns a response or an error for each, in
    order. Errors are not raised."""
    if _host is None:
        raise RuntimeError(
            'no http here: in a component, add imports = ["http"] to plugin.toml; '
            "in a test, use gavel.testing.scripted_http"
        )
    return _host(requests)


_host: Callable[[Sequence[Request]], list[Answer]] | None = None
"""Set by the component, and by `gavel.testing`."""


def redirected(request: Request, response: Response) -> Request | None:
    """The request that a redirect asks for in place of this one; `None` if the
    response is not a redirect, or is not followed."""
    if not request.follow_redirects or response.status not in (301, 302, 303, 307, 308):
        return None
    location = response.headers.get("location")
    if location is None:
        return None
    url = urljoin(request.url, location)
    headers = dict(request.headers)
    if origin(url) != origin(request.url):
        # Another server must not get them.
        headers = {name: value for name, value in headers.items() if name.lower() not in ("authorization", "cookie")}
    # As browsers and other clients do.
    if response.status == 303 and request.method != "HEAD" or response.status in (301, 302) and request.method == "POST":
        headers = {name: value for name, value in headers.items() if not name.lower().startswith("content-")}
        return replace(request, url=url, method="GET", headers=headers, data=b"", json=None)
    return replace(request, url=url, headers=headers)


def origin(url: str) -> str:
    """The scheme, host and port of a URL, as a grant has them."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
