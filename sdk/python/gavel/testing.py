"""For unit tests on your own machine, without the host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from . import chat
from .verdict import Unavailable

__all__ = ["scripted_chat"]


@contextmanager
def scripted_chat(replies: Mapping[str, Sequence[str | Exception]]) -> Iterator[list[chat.Request]]:
    """Answers what is asked of each endpoint with its replies, one after the
    other; an exception is the error that is answered.

        with scripted_chat({"judge": ["Score: 7"]}) as requests:
            assert score(Sample("…"), Reference()) == 0.7
        assert len(requests) == 1
    """
    left = {endpoint: list(texts) for endpoint, texts in replies.items()}
    asked: list[chat.Request] = []

    def answer(request: chat.Request) -> chat.Answer:
        asked.append(request)
        if request.endpoint not in left:
            return chat.InvalidRequest(f"the endpoint `{request.endpoint}` is not granted")
        if not left[request.endpoint]:
            raise AssertionError(f"no reply of `{request.endpoint}` is left for request {len(asked)}")
        reply = left[request.endpoint].pop(0)
        if isinstance(reply, (chat.InvalidRequest, chat.Refused, Unavailable)):
            return reply
        if isinstance(reply, Exception):
            raise reply
        return chat.Reply(reply)

    before = chat._host
    chat._host = lambda requests: [answer(request) for request in requests]
    try:
        yield asked
    finally:
        chat._host = before
