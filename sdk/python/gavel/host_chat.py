"""`gavel.chat` in a component: over the host's `chat`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from gavel_world.imports import chat as host

from . import chat
from .contract import types
from .sample import to_host
from .verdict import Unavailable

__all__ = ["complete"]


def complete(requests: Sequence[chat.Request]) -> list[chat.Answer]:
    """Sends all requests and waits for the last."""
    answers = host.complete(
        [
            host.Request(
                request.endpoint,
                [to_host(message, types) for message in chat.messages_of(request.messages)],
                json.dumps(dict(request.options)),
            )
            for request in requests
        ]
    )
    return [_answer(answer.value) for answer in answers]


def _answer(value: Any) -> chat.Answer:
    if isinstance(value, host.Error_InvalidRequest):
        return chat.InvalidRequest(value.value)
    if isinstance(value, host.Error_Refused):
        return chat.Refused(value.value)
    if isinstance(value, host.Error_Unavailable):
        return Unavailable(value.value)
    return chat.Reply._from_host(value)
