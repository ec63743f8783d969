"""Where a response stands in the messages of the policy, so that its parts can
have credit. Every SDK has the same rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from .sample import Trajectory

__all__ = ["Span", "response_spans"]


@dataclass(frozen=True)
class Span:
    """The first byte of the response in a message."""

    trajectory: int
    message: int
    start: int


@dataclass(frozen=True)
class _Reply:
    trajectory: int
    message: int
    text: bytes
    has_calls: bool
    is_last: bool

    def span(self, start: int) -> Span:
        return Span(self.trajectory, self.message, start)


def response_spans(response: str, trajectories: list[Trajectory]) -> list[Span]:
    """The response is the last message of a trajectory, most often without
    calls. Otherwise it is an earlier message, or a part of one: the only text
    that is like it, or the end of the only last message. Empty if it is none of
    these."""
    replies, wanted = _replies(trajectories), response.encode()

    def whole(is_final: Callable[[_Reply], bool]) -> list[Span]:
        return [reply.span(0) for reply in replies if reply.text == wanted and is_final(reply)]

    found = (
        whole(lambda reply: reply.is_last and not reply.has_calls)
        or whole(lambda reply: reply.is_last)
        or whole(lambda _: True)
    )
    if found or not wanted:
        return found
    parts = [reply.span(at) for reply in replies for at in _occurrences(reply.text, wanted)]
    ends = [
        reply.span(len(reply.text.decode().rstrip().encode()) - len(wanted))
        for reply in replies
        if reply.is_last and reply.text.decode().rstrip().encode().endswith(wanted)
    ]
    return parts if len(parts) == 1 else ends if len(ends) == 1 else []


def _replies(trajectories: list[Trajectory]) -> list[_Reply]:
    replies = []
    for number, trajectory in enumerate(trajectories):
        own = [(at, message) for at, message in enumerate(trajectory.messages) if message.role == "assistant"]
        for at, message in own:
            text, has_calls = message.text.encode(), bool(message.tool_calls)
            replies.append(_Reply(number, at, text, has_calls, at == own[-1][0]))
    return replies


def _occurrences(text: bytes, part: bytes) -> list[int]:
    """The places of `part` in `text`, those that overlap too."""
    places, at = [], text.find(part)
    while at >= 0:
        places.append(at)
        at = text.find(part, at + 1)
    return places
