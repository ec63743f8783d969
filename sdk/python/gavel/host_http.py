"""`gavel.http` in a component: over the host's `wasi:http`."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from componentize_py_types import Err, Ok
from gavel_world.imports import monotonic_clock, outgoing_handler, poll, streams
from gavel_world.imports import wasi_http_types as types

from . import http
from .verdict import Unavailable

__all__ = ["exchange"]

CHUNK = 1 << 16

Waits = Generator[Any, None, http.Response]
"""An exchange: a generator that yields what it waits for, and returns the response."""


def exchange(requests: Sequence[http.Request]) -> list[http.Answer]:
    """Sends all at once and waits for the last."""
    exchanges = [_Exchange(request) for request in requests]
    while waiting := [each for each in exchanges if each.answer is None]:
        pollables = [(each, pollable) for each in waiting for pollable in each.waits_for()]
        for index in poll.poll([pollable for _, pollable in pollables]):
            each, pollable = pollables[index]
            # The other pollable of the same exchange may have ended it.
            if each.answer is None:
                each.ready(pollable)
    return [each.answer for each in exchanges if each.answer is not None]


class _Exchange:
    def __init__(self, request: http.Request) -> None:
        self.request = request
        self.answer: http.Answer | None = None
        self.timer: Any = None
        if request.timeout is not None:
            self.timer = monotonic_clock.subscribe_duration(max(0, round(request.timeout * 1e9)))
        self.steps = _followed(request)
        self.awaited: Any = None
        self._go_on()

    def waits_for(self) -> list[Any]:
        return [self.awaited] if self.timer is None else [self.awaited, self.timer]

    def ready(self, pollable: Any) -> None:
        if pollable is self.awaited:
            self._go_on()
        else:
            # Releases everything that it holds.
            self.steps.close()
            place = http.origin(self.request.url)
            self._end(Unavailable(f"{place} did not answer within {self.request.timeout:g} s"))

    def _go_on(self) -> None:
        try:
            self.awaited = next(self.steps)
        except StopIteration as end:
            self._end(end.value)
        except (http.InvalidRequest, http.Refused, Unavailable) as error:
            self._end(error)

    def _end(self, answer: http.Answer) -> None:
        self.answer = answer
        self.awaited = self.timer = None


def _followed(request: http.Request) -> Waits:
    first = request.url
    for _ in range(http.MAX_REDIRECTS + 1):
        response = yield from _one(request)
        following = http.redirected(request, response)
        if following is None:
            return response
        request = following
    raise http.InvalidRequest(f"{first} redirects more than {http.MAX_REDIRECTS} times")


def _one(request: http.Request) -> Waits:
    place = http.origin(request.url)
    data = request.body()
    outgoing = _outgoing(request, data)
    body = outgoing.body()
    try:
        future = outgoing_handler.handle(outgoing, None)
    except Err as error:
        raise _error(place, error.value) from None
    # Closed in reverse order: the host keeps each until everything that came from it is closed.
    with future:
        yield from _write(body, data)
        with future.subscribe() as answered:
            yield answered
        result = future.get().value
    if not isinstance(result, Ok):
        raise _error(place, result.value)
    with result.value as incoming:
        with incoming.headers() as fields:
            headers = [(name, value.decode("latin-1")) for name, value in fields.entries()]
        with incoming.consume() as body:
            content = yield from _read(body, place)
        return http.Response(incoming.status(), content, headers, request.url)


def _outgoing(request: http.Request, data: bytes) -> Any:
    parts = urlsplit(request.url)
    schemes = {"http": types.Scheme_Http, "https": types.Scheme_Https}
    if parts.scheme not in schemes or not parts.netloc:
        raise http.InvalidRequest(f"`{request.url}` is not a URL of http or https")
    path = parts.path or "/"
    if parts.query:
        path += "?" + parts.query
    headers = dict(request.headers)
    names = {name.lower() for name in headers}
    if request.json is not None and "content-type" not in names:
        headers["content-type"] = "application/json"
    if "content-length" not in names and (data or request.method in ("POST", "PUT", "PATCH")):
        headers["content-length"] = str(len(data))
    fields = types.Fields()
    for name, value in headers.items():
        try:
            fields.append(name, str(value).encode("latin-1"))
        except (Err, UnicodeEncodeError):
            raise http.InvalidRequest(f"the header `{name}` cannot be sent") from None
    outgoing = types.OutgoingRequest(fields)
    known = getattr(types, f"Method_{request.method.capitalize()}", None)
    try:
        outgoing.set_method(known() if known else types.Method_Other(request.method))
        outgoing.set_scheme(schemes[parts.scheme]())
        outgoing.set_authority(parts.netloc)
        # Escapes characters that a URL cannot have; escapes that are there stay.
        outgoing.set_path_with_query(quote(path, safe="%/:=&?~#+!$,;'@()*[]"))
    except Err:
        raise http.InvalidRequest(f"`{request.method} {request.url}` cannot be sent") from None
    return outgoing


def _write(body: Any, data: bytes) -> Generator[Any, None, None]:
    try:
        with body.write() as stream, stream.subscribe() as writable:
            while data:
                yield writable
                room = stream.check_write()
                stream.write(data[:room])
                data = data[room:]
            stream.flush()
            yield writable
            stream.check_write()
        types.OutgoingBody.finish(body, None)
    except Err:
        # The server stopped reading; the response says why, or that there is none.
        return


def _read(body: Any, place: str) -> Generator[Any, None, bytes]:
    parts = []
    with body.stream() as stream, stream.subscribe() as readable:
        while True:
            try:
                part = stream.read(CHUNK)
            except Err as error:
                if isinstance(error.value, streams.StreamError_Closed):
                    return b"".join(parts)
                with error.value.value as failed:
                    code = types.http_error_code(failed)
                    said = failed.to_debug_string()
                raise _error(place, code) if code else Unavailable(f"{place} broke off: {said}") from None
            if part:
                parts.append(part)
            else:
                yield readable


def _error(place: str, code: Any) -> Exception:
    if isinstance(code, (types.ErrorCode_HttpRequestDenied, types.ErrorCode_DestinationIpProhibited)):
        return http.Refused(f"no grant of the run covers {place}")
    if isinstance(code, (types.ErrorCode_HttpRequestUriInvalid, types.ErrorCode_HttpRequestMethodInvalid)):
        return http.InvalidRequest(f"the request to {place} cannot be sent: {_words(code)}")
    return Unavailable(f"{place} did not answer: {_words(code)}")


def _words(code: Any) -> str:
    """The code's name as words, with the host's details."""
    name = type(code).__name__.partition("_")[2]
    words = " ".join(re.findall("[A-Z][a-z]*", name)).lower()
    value = getattr(code, "value", None)
    said = getattr(value, "rcode", None) or (value if isinstance(value, str) else None)
    return f"{words} ({said})" if said else words
