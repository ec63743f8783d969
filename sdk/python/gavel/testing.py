"""For unit tests on your own machine, without the host."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from . import chat, http, policy, programs, reward_models
from .refusal import InvalidRequest, Refused
from .sample import Message, ToolCall
from .verdict import Unavailable

__all__ = [
    "ScriptedConversation",
    "scripted_chat",
    "scripted_http",
    "scripted_policy",
    "scripted_programs",
    "scripted_reward_models",
]


@contextmanager
def scripted_chat(replies: Mapping[str, Sequence[str | Exception]]) -> Iterator[list[chat.Request]]:
    """Answers the requests to each endpoint with its replies, one after the
    other. An exception is given as an error.

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
        reply = _next(left[request.endpoint], request.endpoint, asked)
        return chat.Reply(reply) if isinstance(reply, str) else reply

    before = chat._host
    chat._host = lambda requests: [answer(request) for request in requests]
    try:
        yield asked
    finally:
        chat._host = before


@contextmanager
def scripted_reward_models(
    scores: Mapping[str, Sequence[float | reward_models.Scored | Exception]],
) -> Iterator[list[reward_models.Request]]:
    """Answers the requests to each reward model with its scores, one after the
    other. An exception is given as an error.

        with scripted_reward_models({"quality": [0.5]}) as requests:
            assert score(Sample("…"), Reference()) == 0.5
        assert len(requests) == 1
    """
    left = {model: list(each) for model, each in scores.items()}
    asked: list[reward_models.Request] = []

    def answer(request: reward_models.Request) -> reward_models.Answer:
        asked.append(request)
        if request.model not in left:
            return reward_models.InvalidRequest(f"the reward model `{request.model}` is not granted")
        found = _next(left[request.model], request.model, asked)
        return reward_models.Scored(found) if isinstance(found, (int, float)) else found

    before = reward_models._host
    reward_models._host = lambda requests: [answer(request) for request in requests]
    try:
        yield asked
    finally:
        reward_models._host = before


@contextmanager
def scripted_http(
    replies: Mapping[str, Sequence[http.Response | str | bytes | Exception]],
) -> Iterator[list[http.Request]]:
    """Answers the requests to each server with its replies, one after the
    other. A text is a body with the status 200; an exception is given as an
    error. Any other server is refused.

        with scripted_http({"https://judge.example": ['{"score": 0.7}']}) as requests:
            assert score(Sample("…"), Reference()) == 0.7
        assert requests[0].url == "https://judge.example/score"
    """
    left = {server: list(responses) for server, responses in replies.items()}
    asked: list[http.Request] = []

    def answer(request: http.Request) -> http.Answer:
        asked.append(request)
        server = http.origin(request.url)
        if server not in left:
            return http.Refused(f"no grant of the run covers {server}")
        reply = _next(left[server], server, asked)
        if isinstance(reply, Exception):
            return reply
        response = reply if isinstance(reply, http.Response) else http.Response(200, reply)
        response.url = response.url or request.url
        following = http.redirected(request, response)
        return response if following is None else answer(following)

    before = http._host
    http._host = lambda requests: [answer(request) for request in requests]
    try:
        yield asked
    finally:
        http._host = before


@contextmanager
def scripted_programs(
    outputs: Mapping[str, Sequence[programs.Output | str | Exception]],
) -> Iterator[list[programs.Job]]:
    """Answers the jobs of each program with its outputs, one after the other. A
    text is what the program printed before it exited with 0; an exception is
    given as an error.

        with scripted_programs({"python": ["4", programs.Output(ending=programs.Exited(1))]}) as jobs:
            assert score(Sample("…"), Reference()) == 0.5
        assert jobs[0].stdin == "2 2"
    """
    left = {program: list(all_outputs) for program, all_outputs in outputs.items()}
    asked: list[programs.Job] = []

    def answer(job: programs.Job) -> programs.Answer:
        asked.append(job)
        if job.program not in left:
            return programs.InvalidRequest(f"the program `{job.program}` is not granted")
        output = _next(left[job.program], job.program, asked)
        return programs.Output(output.encode()) if isinstance(output, str) else output

    before = programs._host
    programs._host = lambda jobs: [answer(job) for job in jobs]
    try:
        yield asked
    finally:
        programs._host = before


@dataclass
class ScriptedConversation:
    """A conversation of `scripted_policy`."""

    speaker: str
    messages: list[Message]
    functions: Sequence[policy.Function] = ()
    _all: list[ScriptedConversation] = field(default_factory=list, repr=False)

    @property
    def texts(self) -> list[str]:
        """The texts of its messages."""
        return [message.text for message in self.messages]

    def append(self, messages: Sequence[Message]) -> None:
        self.messages.extend(messages)

    def fork(self, speaker: str) -> ScriptedConversation:
        fork = ScriptedConversation(speaker, list(self.messages), self.functions, self._all)
        self._all.append(fork)
        return fork

    def tokens_left(self) -> int:
        return 1000


@contextmanager
def scripted_policy(
    turns: Sequence[str | Message | policy.Turn | Exception],
    functions: Mapping[str, Callable[..., object]] | None = None,
) -> Iterator[list[ScriptedConversation]]:
    """Answers with these turns, one after the other. An exception is given as an
    error. `functions` are the tools of the run: each takes the arguments of a
    call by name. Gives the conversations.

        with scripted_policy(["4", "It is 5."]) as conversations:
            assert attempt(Task("2 + 3?")) == "It is 5."
        assert conversations[0].texts[2] == "Check that, and give your final answer."
    """
    script = _ScriptedPolicy(list(turns), dict(functions or {}))
    before = policy._host
    policy._host = script
    try:
        yield script.conversations
    finally:
        policy._host = before


class _ScriptedPolicy:
    def __init__(self, turns: list[str | Message | policy.Turn | Exception], functions: dict[str, Callable[..., object]]) -> None:
        self._turns = turns
        self._functions = functions
        self.conversations: list[ScriptedConversation] = []

    def open(
        self, speaker: str, messages: Sequence[Message], functions: Sequence[policy.Function]
    ) -> ScriptedConversation:
        opened = ScriptedConversation(speaker, list(messages), functions, self.conversations)
        self.conversations.append(opened)
        return opened

    def generate(self, conversations: Sequence[Any], options: Mapping[str, Any]) -> list[policy.Answer]:
        return [self._turn(conversation) for conversation in conversations]

    def _turn(self, conversation: ScriptedConversation) -> policy.Answer:
        if not self._turns:
            raise AssertionError("no turn of the policy is left")
        turn = self._turns.pop(0)
        if isinstance(turn, (policy.InvalidRequest, policy.Exhausted)):
            return turn
        if isinstance(turn, Exception):
            raise turn
        if not isinstance(turn, policy.Turn):
            message = Message("assistant", [turn]) if isinstance(turn, str) else turn
            turn = policy.Turn(message, tokens=len(message.text))
        conversation.messages.append(turn.message)
        return turn

    def functions(self) -> list[policy.Function]:
        return [policy.Function(name, (function.__doc__ or "").strip()) for name, function in self._functions.items()]

    def call(self, calls: Sequence[ToolCall]) -> list[Message]:
        return [Message("tool", [self._answer(call)], tool_call_id=call.id, name=call.name) for call in calls]

    def _answer(self, call: ToolCall) -> str:
        if call.name not in self._functions:
            return f"error: there is no function `{call.name}`; there are: {', '.join(sorted(self._functions))}"
        return str(self._functions[call.name](**json.loads(call.arguments)))


def _next(left: list[Any], of: str, asked: Sequence[Any]) -> Any:
    """Takes the first of the replies that are left. An exception that is not one
    of the host's errors is raised."""
    if not left:
        raise AssertionError(f"no reply of `{of}` is left for request {len(asked)}")
    reply = left.pop(0)
    if isinstance(reply, Exception) and not isinstance(reply, (InvalidRequest, Refused, Unavailable)):
        raise reply
    return reply
