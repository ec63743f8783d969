"""Asks reward models.

The run's configuration names reward models (`[reward_model.quality]`) and
grants them to a plugin. `plugin.toml` declares the import
(`imports = ["reward-model"]`).

    from gavel import Message, reward_models

    conversation = [*sample.prompt, Message("assistant", [sample.response])]
    score = reward_models.score("quality", conversation)
    scores = reward_models.score_all("quality", conversations)    # all at once: one wait
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Union

from .chat import Prompt
from .refusal import InvalidRequest, Refused
from .verdict import Unavailable

__all__ = ["InvalidRequest", "Refused", "Request", "Scored", "Step", "ask", "score", "score_all", "score_steps"]


@dataclass
class Request:
    """A conversation that a reward model is asked to score."""

    model: str
    """Its name in the configuration."""
    messages: Prompt
    """Its last message is what the model scores."""


@dataclass
class Step:
    """The value of a step: the bytes `[start, end)` of the UTF-8 text of the last message."""

    start: int
    end: int
    value: float


@dataclass
class Scored:
    """The score of a conversation, and the values of its steps."""

    score: float
    steps: list[Step] = field(default_factory=list)
    """In order; empty unless the model is a process reward model."""


Answer = Union[Scored, InvalidRequest, Refused, Unavailable]


def score(model: str, messages: Prompt) -> float:
    """Asks for the score of a conversation and waits.

    Raises `InvalidRequest`, `Refused` or `gavel.Unavailable`. If the last
    leaves the reward, the outcome is `unavailable`.
    """
    return score_all(model, [messages])[0]


def score_all(model: str, conversations: Sequence[Prompt]) -> list[float]:
    """Asks for all scores at once and waits for the last.

    Raises the first error, as `score` does.
    """
    return [scored.score for scored in _all(model, conversations)]


def score_steps(model: str, messages: Prompt) -> Scored:
    """Asks a process reward model for the score and the values of the steps.

    Raises as `score` does.
    """
    return _all(model, [messages])[0]


def _all(model: str, conversations: Sequence[Prompt]) -> list[Scored]:
    answers = ask([Request(model, messages) for messages in conversations])
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return [answer for answer in answers if isinstance(answer, Scored)]


def ask(requests: Sequence[Request]) -> list[Answer]:
    """Asks for all scores at once. Returns a score or an error for each, in
    order. Errors are not raised."""
    if _host is None:
        raise RuntimeError(
            'no reward models here: in a component, add imports = ["reward-model"] to plugin.toml; '
            "in a test, use gavel.testing.scripted_reward_models"
        )
    return _host(requests)


_host: Callable[[Sequence[Request]], list[Answer]] | None = None
"""Set by the component, and by `gavel.testing`."""
