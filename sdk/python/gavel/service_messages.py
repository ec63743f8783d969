"""Requests and answers of HTTP/1.1, as bytes."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

__all__ = ["LONGEST_HEAD", "Answer", "Refused", "Request", "answer", "error", "read", "written"]

LONGEST_HEAD = 64 << 10
LARGEST_BODY = 256 << 20


@dataclass(frozen=True)
class Request:
    method: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    stays: bool  # whether another request may follow on this connection


@dataclass(frozen=True)
class Answer:
    status: HTTPStatus
    body: bytes
    error: str | None = None  # also a line of the log


class Refused(Exception):
    """A request that is not read to its end."""

    def __init__(self, status: HTTPStatus, what: str) -> None:
        super().__init__(what)
        self.answer = error(status, what)


def answer(status: HTTPStatus, body: Mapping[str, Any]) -> Answer:
    return Answer(status, json.dumps(body).encode())


def error(status: HTTPStatus, what: str) -> Answer:
    return Answer(status, json.dumps({"error": what}).encode(), what)


def written(answer: Answer, stays: bool) -> bytes:
    head = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\n"
        "content-type: application/json\r\n"
        f"content-length: {len(answer.body)}\r\n"
        f"connection: {'keep-alive' if stays else 'close'}\r\n\r\n"
    )
    return head.encode() + answer.body


async def read(first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Request:
    """Reads the request that begins with `first`. The writer is for what HTTP
    answers in between (`100 Continue`)."""
    try:
        head = first + await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        what = f"the headers have more than {LONGEST_HEAD} bytes"
        raise Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, what) from None
    method, stays, headers = _head(head)
    length = _length(headers)
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = await _chunks(reader) if length is None else await reader.readexactly(length)
    return Request(method, headers, body, stays)


def _head(head: bytes) -> tuple[str, bool, Mapping[str, str]]:
    first, *lines = head.decode("latin-1").strip("\r\n").split("\r\n")
    matched = re.fullmatch(r"([A-Z]+) [!-~]+ HTTP/1\.([01])", first)
    if not matched:
        raise Refused(HTTPStatus.BAD_REQUEST, f"no request of HTTP/1.1: {first[:80]!r}")
    method, version = matched.groups()
    if method not in ("GET", "POST"):
        raise Refused(HTTPStatus.NOT_IMPLEMENTED, f"the method is {method}, and samples are sent with POST")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or not name or name != name.strip():
            raise Refused(HTTPStatus.BAD_REQUEST, f"no header: {line[:80]!r}")
        if name in headers and name in ("content-length", "transfer-encoding"):
            raise Refused(HTTPStatus.BAD_REQUEST, f"the header {name} is there twice")
        headers[name] = value.strip()
    options = {option.strip() for option in headers.get("connection", "").lower().split(",")}
    stays = "keep-alive" in options if version == "0" else "close" not in options
    return method, stays, headers


def _length(headers: Mapping[str, str]) -> int | None:
    """The length of the body; none if it comes in chunks."""
    coding, length = headers.get("transfer-encoding"), headers.get("content-length")
    if coding is not None:
        if coding.lower() != "chunked":
            raise Refused(HTTPStatus.NOT_IMPLEMENTED, f"the transfer-encoding is {coding!r}, and can be chunked")
        if length is not None:
            raise Refused(HTTPStatus.BAD_REQUEST, "there are a content-length and a transfer-encoding")
        return None
    if not re.fullmatch("[0-9]{1,18}", length or "0"):
        raise Refused(HTTPStatus.BAD_REQUEST, f"the content-length is {length!r}")
    return _allowed(int(length or 0))


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    try:
        while True:
            line = await reader.readuntil(b"\r\n")
            size = re.match(rb"[0-9A-Fa-f]{1,15}(?=[\r; \t])", line)
            if not size:
                raise Refused(HTTPStatus.BAD_REQUEST, f"no chunk: {line[:80]!r}")
            length = int(size[0], 16)
            if length == 0:
                break
            _allowed(len(body) + length)
            body += await reader.readexactly(length)
            if await reader.readexactly(2) != b"\r\n":
                raise Refused(HTTPStatus.BAD_REQUEST, "a chunk is longer than it says")
        while await reader.readuntil(b"\r\n") != b"\r\n":
            pass  # Headers after the body.
    except asyncio.LimitOverrunError:
        raise Refused(HTTPStatus.BAD_REQUEST, "a line between chunks is too long") from None
    return bytes(body)


def _allowed(length: int) -> int:
    if length > LARGEST_BODY:
        what = f"the body has {length} bytes, and {LARGEST_BODY} are allowed"
        raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, what)
    return length
