"""Samples: what the policy wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Union, cast

from .spans import Span, response_spans
from .verdict import Abstained, Credit, InvalidInput, NotCalled, NoVerdict, PriorVerdict, Score, Verdict, as_verdict

__all__ = ["CallEnding", "EndedCall", "FinishReason", "Function", "Media", "Message", "Role", "Sample", "ToolCall", "Trajectory"]

Role = Literal["system", "user", "assistant", "tool"]

FinishReason = Literal["stop", "length", "max-turns", "timeout", "error"]
"""Why a trajectory ended."""


CallEnding = Literal["answered", "called-wrongly", "out-of-budget", "unavailable", "failed"]
"""How a call of a tool ended."""


@dataclass(frozen=True)
class EndedCall:
    """A call of a tool."""

    turn: int
    """The turn of the sample in which the policy made the call, from 0."""
    function: str | None
    """`None` if the call cannot be parsed, or there is no such function."""
    ending: CallEnding


@dataclass
class Function:
    """A function that the policy could call."""

    name: str
    description: str
    parameters: dict[str, Any]
    """The JSON Schema of its arguments, which are an object."""


class Media:
    """An image, a sound or another attachment; its bytes stay in the host until
    they are read."""

    def __init__(self, media_type: str, data: bytes) -> None:
        self.media_type = media_type
        """A media type such as `image/png`."""
        self.size = len(data)
        """The size in bytes."""
        self._data = data

    def read(self, offset: int = 0, length: int | None = None) -> bytes:
        """At most `length` bytes from `offset`; fewer at the end. Without a
        length, all bytes."""
        end = None if length is None else offset + length
        return self._data[offset:end]


class _HostMedia(Media):
    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self.media_type = handle.media_type()
        self.size = handle.size()

    def read(self, offset: int = 0, length: int | None = None) -> bytes:
        rest = max(self.size - offset, 0)
        return cast(bytes, self._handle.read(offset, rest if length is None else min(length, rest)))


@dataclass
class ToolCall:
    """A call that the policy asked for."""

    id: str
    name: str
    arguments: str
    """JSON text, as the policy wrote it; `json.loads` may fail on it."""


@dataclass
class Message:
    """One message of a conversation."""

    role: Role
    content: list[Union[str, Media]]
    tool_calls: list[ToolCall] = field(default_factory=list)
    tool_call_id: str | None = None
    """For a message of the role `tool`: the call that it answers."""
    name: str | None = None

    @property
    def text(self) -> str:
        """The texts of the message, joined."""
        return "".join(part for part in self.content if isinstance(part, str))

    @classmethod
    def of(cls, message: Message | Mapping[str, Any]) -> Message:
        """A message from a dict such as `{"role": "user", "content": "Hi"}`."""
        if isinstance(message, Message):
            return message
        content = message.get("content") or []
        calls = [
            ToolCall(call.get("id", ""), call["function"]["name"], _arguments(call["function"].get("arguments")))
            for call in message.get("tool_calls") or []
        ]
        return cls(
            role=message["role"],
            content=[content] if isinstance(content, str) else [_part(part) for part in content],
            tool_calls=calls,
            tool_call_id=message.get("tool_call_id"),
            name=message.get("name"),
        )

    def to_dict(self) -> dict[str, Any]:
        """The message as the dict that chat APIs use; attachments are left out."""
        message: dict[str, Any] = {"role": self.role, "content": self.text}
        if self.tool_calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in self.tool_calls
            ]
        if self.tool_call_id is not None:
            message["tool_call_id"] = self.tool_call_id
        if self.name is not None:
            message["name"] = self.name
        return message

    @classmethod
    def _from_host(cls, message: Any) -> Message:
        return cls(
            role=message.role.name.lower(),
            content=[part.value if isinstance(part.value, str) else _HostMedia(part.value) for part in message.content],
            tool_calls=[ToolCall(call.id, call.name, call.arguments) for call in message.tool_calls],
            tool_call_id=message.tool_call_id,
            name=message.name,
        )


def to_host(message: Message, types: Any) -> Any:
    """A message in the types of the contract, in a component."""
    content = [
        types.ContentPart_Text(part) if isinstance(part, str) else types.ContentPart_Media(part._handle)  # type: ignore[attr-defined]
        for part in message.content
    ]
    calls = [types.ToolCall(call.id, call.name, call.arguments) for call in message.tool_calls]
    role = types.Role[message.role.upper()]
    return types.Message(role, content, calls, message.tool_call_id, message.name)


def _part(part: str | Media | Mapping[str, Any]) -> str | Media:
    return part if isinstance(part, (str, Media)) else str(part["text"])


def _arguments(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _messages(messages: str | Sequence[Message | Mapping[str, Any]], role: Role) -> list[Message]:
    if isinstance(messages, str):
        return [Message(role, [messages])]
    return [Message.of(message) for message in messages]


def _dashed(case: Any) -> Any:
    """A case of an enum of the contract, as the contract spells it."""
    return case.name.lower().replace("_", "-")


# In the two classes below, a value is read from the host when it is first used.
# A constructor, used in tests, puts the values where the cache would.


class Trajectory:
    """One conversation of a sample. Its messages are those after the prompt."""

    def __init__(
        self,
        messages: str | Sequence[Message | Mapping[str, Any]],
        *,
        finish_reason: FinishReason = "stop",
        prompt_tokens: int | None = None,
        response_tokens: int | None = None,
        policy_version: int | None = None,
        speaker: str = "",
        opening: str | Sequence[Message | Mapping[str, Any]] = "",
        functions: Sequence[Function] = (),
        calls: Sequence[EndedCall] = (),
        states: Mapping[str, Any] | None = None,
    ) -> None:
        self.messages = _messages(messages, "assistant")
        roles = [message.role for message in self.messages]
        answers = [message.text for message in self.messages if message.role == "assistant"]
        self.response = answers[-1] if answers else ""
        self.finish_reason = finish_reason
        self.turns = roles.count("assistant")
        self.tool_turns = roles.count("tool")
        self.prompt_tokens = prompt_tokens
        self.response_tokens = response_tokens
        self.policy_version = policy_version
        self.speaker = speaker
        self.opening = _messages(opening, "user")
        self.functions = list(functions)
        self.calls = list(calls)
        self._states = dict(states or {})

    @classmethod
    def _from_host(cls, handle: Any) -> Trajectory:
        trajectory = cls.__new__(cls)
        trajectory._handle = handle
        trajectory._states = {}
        return trajectory

    _handle: Any = None
    _states: dict[str, Any]

    @cached_property
    def messages(self) -> list[Message]:
        """The messages after the prompt."""
        return [Message._from_host(self._handle.message(index)) for index in range(self._handle.message_count())]

    @cached_property
    def response(self) -> str:
        """The text of the last message of the role `assistant`."""
        return cast(str, self._handle.response())

    @cached_property
    def finish_reason(self) -> FinishReason:
        """Why it ended."""
        return cast(FinishReason, _dashed(self._handle.finish_reason()))

    @cached_property
    def turns(self) -> int:
        """The number of messages of the role `assistant`."""
        return cast(int, self._handle.turns())

    @cached_property
    def tool_turns(self) -> int:
        """The number of messages of the role `tool`."""
        return cast(int, self._handle.tool_turns())

    @cached_property
    def prompt_tokens(self) -> int | None:
        """The number of tokens of the prompt; `None` if no policy wrote the response."""
        return cast("int | None", self._handle.prompt_tokens())

    @cached_property
    def response_tokens(self) -> int | None:
        """The number of tokens that the policy wrote."""
        return cast("int | None", self._handle.response_tokens())

    @cached_property
    def policy_version(self) -> int | None:
        """The version of the policy that wrote the first token."""
        return cast("int | None", self._handle.policy_version())

    @cached_property
    def speaker(self) -> str:
        """The speaker that the policy played, if the agent names several; empty otherwise."""
        return cast(str, self._handle.speaker())

    @cached_property
    def opening(self) -> list[Message]:
        """The messages that the conversation began with: the task's prompt, or
        the messages that an agent opened it with."""
        return [Message._from_host(message) for message in self._handle.opening()]

    @cached_property
    def functions(self) -> list[Function]:
        """The functions that the policy could call."""
        return [Function(it.name, it.description, json.loads(it.parameters)) for it in self._handle.functions()]

    @cached_property
    def calls(self) -> list[EndedCall]:
        """The calls of tools, in the order in which the policy made them."""
        return [EndedCall(it.turn, it.function, _dashed(it.ending)) for it in self._handle.calls()]

    def turn_finish_reason(self, index: int) -> FinishReason | None:
        """Why the policy's turn in the message at `index` ended: `stop` or
        `length`; `None` if the policy did not write that message, and in a test."""
        reason = None if self._handle is None else self._handle.turn_finish_reason(index)
        return None if reason is None else _dashed(reason)

    def message_tokens(self, index: int) -> int | None:
        """The number of tokens that the policy wrote in the message at `index`;
        `None` if the policy did not write that message, and in a test."""
        return None if self._handle is None else cast("int | None", self._handle.message_tokens(index))

    def state(self, name: str) -> Any:
        """The state in which the tool `name` of the run ended, as its
        `@final_state` reported it; `None` if it reported none, or the policy did
        not call the tool."""
        if name not in self._states and self._handle is not None:
            state = self._handle.state(name)
            self._states[name] = None if state is None else json.loads(state)
        return self._states.get(name)


class Sample:
    """One attempt at a task.

    The host makes it. A test makes one from a response, or from messages:
    `Sample("42")`, `Sample([{"role": "assistant", "content": "42"}], prompt="6 * 7?")`.
    `verdicts` are those of other rewards: `Sample("42", verdicts={"quality": 0.5})`.
    """

    def __init__(
        self,
        response: str | Sequence[Message | Mapping[str, Any]] = "",
        *,
        prompt: str | Sequence[Message | Mapping[str, Any]] = "",
        trajectories: Sequence[Trajectory] | None = None,
        answer: str | None = None,
        extra: dict[str, Any] | None = None,
        task_id: str = "0",
        data_source: str | None = None,
        group_index: int = 0,
        verdicts: Mapping[str, Verdict | NotCalled | NoVerdict] | None = None,
    ) -> None:
        self.task_id = task_id
        self.data_source = data_source
        self.group_index = group_index
        self.prompt = _messages(prompt, "user")
        self.trajectories = [Trajectory(response)] if trajectories is None else list(trajectories)
        first = self.trajectories[0].response if self.trajectories else ""
        self.response = first if answer is None else answer
        self.extra = extra
        self._verdicts = {name: _prior(said) for name, said in (verdicts or {}).items()}

    @classmethod
    def _from_host(cls, handle: Any) -> Sample:
        sample = cls.__new__(cls)
        sample._handle = handle
        sample._verdicts = {}
        return sample

    _handle: Any = None
    _verdicts: dict[str, PriorVerdict | None]

    @cached_property
    def task_id(self) -> str:
        """The id of the task, the same in every sample of a group."""
        return cast(str, self._handle.task_id())

    @cached_property
    def data_source(self) -> str | None:
        """The column `data_source` of the task's row."""
        return cast("str | None", self._handle.data_source())

    @cached_property
    def group_index(self) -> int:
        """The number of this sample in its group, from 0."""
        return cast(int, self._handle.group_index())

    @cached_property
    def prompt(self) -> list[Message]:
        """The messages of the prompt."""
        return [Message._from_host(message) for message in self._handle.prompt()]

    @cached_property
    def trajectories(self) -> list[Trajectory]:
        """The conversations of this attempt; most samples have one."""
        handles = (self._handle.trajectory(index) for index in range(self._handle.trajectory_count()))
        return [Trajectory._from_host(handle) for handle in handles]

    @cached_property
    def response(self) -> str:
        """The response: the agent's answer, or else that of the first trajectory."""
        return cast(str, self._handle.response())

    @cached_property
    def extra(self) -> dict[str, Any] | None:
        """The object that the agent returned beside its answer; `None` if there is none."""
        extra = self._handle.extra()
        return None if extra is None else cast("dict[str, Any]", json.loads(extra))

    @property
    def messages(self) -> list[Message]:
        """The messages of the first trajectory."""
        return self.trajectories[0].messages if self.trajectories else []

    def credit(self, start: int, end: int, value: float) -> list[Credit]:
        """Credit for bytes `[start, end)` of the UTF-8 text of the response, in
        each message of the policy where the response stands. A response that
        several trajectories end with, word for word, stands in each of them.

        Raises `InvalidInput` if an agent put its answer together, so that it
        stands in no message, or stands in several without being any of them."""
        if not self._spans:
            raise InvalidInput(
                "the response is not the text of one message of the policy, so that its parts cannot have credit"
            )
        return [Credit(span.trajectory, span.message, span.start + start, span.start + end, value) for span in self._spans]

    @cached_property
    def _spans(self) -> list[Span]:
        return response_spans(self.response, self.trajectories)

    def verdict(self, name: str) -> PriorVerdict | None:
        """The verdict of the reward `name` on the sample: a `Score`,
        `Abstained`, `NotCalled` or `NoVerdict`. `None` unless the run's
        configuration lists it in this reward's `after`."""
        if name not in self._verdicts and self._handle is not None:
            self._verdicts[name] = _prior_from_host(self._handle.verdict(name))
        return self._verdicts.get(name)


def _prior(said: Verdict | NotCalled | NoVerdict) -> PriorVerdict:
    return said if isinstance(said, (NotCalled, NoVerdict)) else as_verdict(said)


def _prior_from_host(verdict: Any) -> PriorVerdict | None:
    """A case of the contract's variant, whose class is named after it."""
    case = type(verdict).__name__.rpartition("_")[2]
    if case == "Scored":
        score = verdict.value
        metrics = {metric.name: metric.value for metric in score.metrics}
        credit = [Credit(part.trajectory, part.message, part.start, part.end, part.value) for part in score.credit]
        payload = None if score.payload is None else json.loads(score.payload)
        return Score(score.value, metrics, score.note, credit, payload)
    if case == "Abstained":
        return Abstained(verdict.value)
    return {"NotCalled": NotCalled(), "NoVerdict": NoVerdict()}.get(case)
