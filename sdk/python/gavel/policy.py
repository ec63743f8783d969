"""The policy, which is the model in training, and the tools of the run, as an agent calls them.

    from gavel import Task, agent, policy

    @agent(pure=True)
    def attempt(task: Task) -> str:
        conversation = policy.Conversation(task.prompt, functions=policy.functions())
        while True:
            turn = conversation.generate()
            if not turn.tool_calls:
                return turn.text
            conversation.append(policy.call(turn.tool_calls))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Union

from .refusal import InvalidRequest
from .sample import FinishReason, Message, ToolCall

__all__ = [
    "Answer",
    "Conversation",
    "Exhausted",
    "Function",
    "InvalidRequest",
    "Turn",
    "answer",
    "call",
    "functions",
    "generate_all",
]

Messages = Union[str, Sequence[Union[Message, Mapping[str, Any]]]]
"""A text of the role `user`, or messages."""


class Exhausted(Exception):
    """A budget of the sample is used up: tokens of the conversation, or turns."""


@dataclass(frozen=True)
class Function:
    """A function that the policy may call."""

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})
    """The JSON Schema of its arguments, which are an object."""


@dataclass
class Turn:
    """A turn of the policy."""

    message: Message
    malformed_calls: list[str] = field(default_factory=list)
    """What is wrong with the calls that cannot be parsed, one text for each."""
    finish_reason: FinishReason = "stop"
    tokens: int = 0

    @property
    def text(self) -> str:
        """The text of the message."""
        return self.message.text

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls of the message."""
        return self.message.tool_calls


Answer = Union[Turn, InvalidRequest, Exhausted]


class Conversation:
    """A conversation with the policy. It is a trajectory of the sample if the
    policy wrote in it. Its tokens stay in the host."""

    def __init__(self, messages: Messages, *, speaker: str = "", functions: Sequence[Function] = ()) -> None:
        """Begins with `messages` and offers `functions`. `speaker` names the
        speaker that the policy plays, if an agent has several."""
        self._handle = _the_host().open(speaker, _as_messages(messages), list(functions))

    def append(self, messages: Messages) -> None:
        """Appends messages that the policy did not write."""
        self._handle.append(_as_messages(messages))

    def generate(self, *, max_tokens: int | None = None, stop: Sequence[str] = ()) -> Turn:
        """Generates the policy's next turn. `stop` lists texts that end the turn
        and are part of it.

        Raises `InvalidRequest` or `Exhausted`. If the latter leaves the agent,
        the policy's last message is the response.
        """
        answer = generate_all([self], max_tokens=max_tokens, stop=stop)[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def fork(self, speaker: str = "") -> Conversation:
        """A new conversation with the same history. Training uses the turns before
        the fork only once, in the original."""
        fork = object.__new__(Conversation)
        fork._handle = self._handle.fork(speaker)
        return fork

    @property
    def tokens_left(self) -> int:
        """The number of tokens by which the conversation may still grow."""
        return int(self._handle.tokens_left())


def generate_all(
    conversations: Sequence[Conversation], *, max_tokens: int | None = None, stop: Sequence[str] = ()
) -> list[Answer]:
    """Generates the next turn of each conversation, all at once.
    Returns a turn or an error for each, in order. Errors are not raised."""
    options: dict[str, Any] = {"stop": list(stop)}
    if max_tokens is not None:
        options["max_tokens"] = max_tokens
    return _the_host().generate([conversation._handle for conversation in conversations], options)


def functions() -> list[Function]:
    """The functions of the run's tools."""
    return _the_host().functions()


def call(calls: Sequence[ToolCall]) -> list[Message]:
    """Makes calls; calls of different tools run at once. Returns one message of
    the role `tool` for each call, in order."""
    return _the_host().call(list(calls))


def answer(turn: Turn) -> list[Message]:
    """Makes all calls of a turn, and returns their answers. The answer to a call
    that cannot be parsed says what is wrong with it. Empty if the turn has no
    calls."""
    answers = call(turn.tool_calls) if turn.tool_calls else []
    return answers + [Message("tool", [f"error: the call cannot be read: {why}"]) for why in turn.malformed_calls]


class Handle(Protocol):
    """A conversation of the host."""

    def append(self, messages: Sequence[Message]) -> None: ...
    def fork(self, speaker: str) -> Handle: ...
    def tokens_left(self) -> int: ...


class Host(Protocol):
    """The host of an agent: the component's, or a script of `gavel.testing`."""

    def open(self, speaker: str, messages: Sequence[Message], functions: Sequence[Function]) -> Handle: ...
    def generate(self, conversations: Sequence[Any], options: Mapping[str, Any]) -> list[Answer]: ...
    def functions(self) -> list[Function]: ...
    def call(self, calls: Sequence[ToolCall]) -> list[Message]: ...


_host: Host | None = None
"""Set by the component, and by `gavel.testing`."""


def _the_host() -> Host:
    if _host is None:
        raise RuntimeError(
            "no policy here: it is asked in the function of an agent, and in a test with gavel.testing.scripted_policy"
        )
    return _host


def _as_messages(messages: Messages) -> list[Message]:
    if isinstance(messages, str):
        return [Message("user", [messages])]
    return [Message.of(message) for message in messages]
