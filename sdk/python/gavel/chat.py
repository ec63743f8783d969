"""Asks language models.

The run's configuration names endpoints (`[chat.judge]`) and grants them to a
plugin. `plugin.toml` declares the import (`imports = ["chat"]`).

    from gavel import chat

    reply = chat.ask("judge", "Is 7 prime? Answer yes or no.", temperature=0)
    replies = chat.ask_all("judge", questions)      # all at once: one wait
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

from .refusal import InvalidRequest, Refused
from .sample import Message
from .verdict import Unavailable

__all__ = ["InvalidRequest", "Refused", "Reply", "Request", "ask", "ask_all", "complete"]

Prompt = Union[str, Sequence[Union[Message, Mapping[str, Any]]]]
"""A text of the role `user`, or messages."""


@dataclass
class Request:
    """A request to an endpoint."""

    endpoint: str
    """Its name in the configuration."""
    messages: Prompt
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the request, such as `temperature` or `max_tokens`."""


class Reply:
    """The reply of a model."""

    def __init__(self, text: str, finish_reason: str | None = "stop", body: Mapping[str, Any] | None = None) -> None:
        self.text = text
        """The text of the first choice."""
        self.finish_reason = finish_reason
        """Why the first choice ended, as the endpoint reports it: `stop`, `length`."""
        self._body: Callable[[], str] = lambda: json.dumps(body or {})

    @classmethod
    def _from_host(cls, handle: Any) -> Reply:
        reply = cls(handle.text(), handle.finish_reason())
        reply._body = handle.body
        return reply

    @property
    def body(self) -> Any:
        """The whole body of the reply."""
        return json.loads(self._body())


Answer = Union[Reply, InvalidRequest, Refused, Unavailable]


def ask(endpoint: str, prompt: Prompt, **options: Any) -> Reply:
    """Asks an endpoint and waits for the reply.

    Raises `InvalidRequest`, `Refused` or `gavel.Unavailable`. If the last
    leaves the reward, the outcome is `unavailable`.
    """
    return ask_all(endpoint, [prompt], **options)[0]


def ask_all(endpoint: str, prompts: Sequence[Prompt], **options: Any) -> list[Reply]:
    """Sends all prompts to an endpoint at once and waits for the last reply.

    Raises the first error, as `ask` does.
    """
    answers = complete([Request(endpoint, prompt, options) for prompt in prompts])
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return [answer for answer in answers if isinstance(answer, Reply)]


def complete(requests: Sequence[Request]) -> list[Answer]:
    """Sends all requests at once. Returns a reply or an error for each, in
    order. Errors are not raised."""
    if _host is None:
        raise RuntimeError(
            'no chat here: in a component, add imports = ["chat"] to plugin.toml; '
            "in a test, use gavel.testing.scripted_chat"
        )
    return _host(requests)


_host: Callable[[Sequence[Request]], list[Answer]] | None = None
"""Set by the component, and by `gavel.testing`."""


def messages_of(prompt: Prompt) -> list[Message]:
    """The prompt as messages."""
    if isinstance(prompt, str):
        return [Message("user", [prompt])]
    return [Message.of(message) for message in prompt]
