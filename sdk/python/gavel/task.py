"""The tasks that an agent attempts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .sample import Message, _messages

__all__ = ["Answer", "Task"]


@dataclass
class Answer:
    """The result of an agent's attempt, where it is more than a response."""

    response: str
    """The response that rewards read."""
    extra: Mapping[str, Any] | None = None
    """An object for rewards and judgers, as JSON; they read it with
    `sample.extra`, and it is recorded."""


class Task:
    """A row of the dataset, without its answer key."""

    def __init__(
        self,
        prompt: str | Sequence[Message | Mapping[str, Any]],
        *,
        id: str = "",
        data_source: str | None = None,
        group_index: int = 0,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.prompt = _messages(prompt, "user")
        """The messages of the prompt."""
        self.id = id
        """The id of the task, the same for every sample of a group."""
        self.data_source = data_source
        self.group_index = group_index
        """The number of this attempt in its group, from 0."""
        self.settings: Mapping[str, Any] = settings or {}
        """What the row sets for the agent: `extra_info.agent_kwargs`."""

    @classmethod
    def _from_host(cls, task: Any) -> Task:
        return cls(
            [Message._from_host(message) for message in task.prompt()],
            id=task.id(),
            data_source=task.data_source(),
            group_index=task.group_index(),
            settings=json.loads(task.settings()),
        )
