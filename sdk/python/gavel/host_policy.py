"""`gavel.policy` in a component: over the host's `policy` and `tools`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from componentize_py_types import Err
from gavel_world.imports import policy as host
from gavel_world.imports import tools as host_tools

from . import policy
from .contract import types
from .sample import Message, ToolCall, to_host

__all__ = ["Conversation", "call", "functions", "generate", "open"]


class Conversation:
    """A conversation of the host."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle

    def append(self, messages: Sequence[Message]) -> None:
        _raising(lambda: self.handle.append([to_host(message, types) for message in messages]))

    def fork(self, speaker: str) -> Conversation:
        return Conversation(_raising(lambda: self.handle.fork(speaker)))

    def tokens_left(self) -> int:
        return int(self.handle.tokens_left())


def open(speaker: str, messages: Sequence[Message], functions: Sequence[policy.Function]) -> Conversation:
    """Opens a conversation."""
    specs = [
        types.ToolSpec(function.name, function.description, json.dumps(dict(function.parameters)))
        for function in functions
    ]
    lowered = [to_host(message, types) for message in messages]
    return Conversation(_raising(lambda: host.Conversation.open(speaker, lowered, specs)))


def generate(conversations: Sequence[Conversation], options: Mapping[str, Any]) -> list[policy.Answer]:
    """Asks for the next turn of each conversation."""
    answers = host.generate([conversation.handle for conversation in conversations], json.dumps(dict(options)))
    return [_answer(answer.value) for answer in answers]


def functions() -> list[policy.Function]:
    """The functions of the run's tools."""
    return [
        policy.Function(spec.name, spec.description, json.loads(spec.parameters)) for spec in host_tools.specs()
    ]


def call(calls: Sequence[ToolCall]) -> list[Message]:
    """Calls tools of the run."""
    lowered = [types.ToolCall(call.id, call.name, call.arguments) for call in calls]
    return [Message._from_host(message) for message in host_tools.call(lowered)]


def _answer(value: Any) -> policy.Answer:
    if isinstance(value, (host.Error_InvalidRequest, host.Error_Exhausted)):
        return _error(value)
    return policy.Turn(
        Message._from_host(value.message()),
        list(value.malformed_calls()),
        value.finish_reason().name.lower().replace("_", "-"),
        value.tokens(),
    )


def _raising(call: Any) -> Any:
    try:
        return call()
    except Err as error:
        raise _error(error.value) from None


def _error(value: Any) -> policy.InvalidRequest | policy.Exhausted:
    if isinstance(value, host.Error_Exhausted):
        return policy.Exhausted(value.value)
    return policy.InvalidRequest(value.value)
