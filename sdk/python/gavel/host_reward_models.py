"""`gavel.reward_models` in a component: over the host's `reward-model`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gavel_world.imports import reward_model as host

from . import chat, reward_models
from .contract import types
from .sample import to_host
from .verdict import Unavailable

__all__ = ["ask"]


def ask(requests: Sequence[reward_models.Request]) -> list[reward_models.Answer]:
    """Asks for all scores and waits for the last."""
    answers = host.score_steps(
        [
            host.Request(request.model, [to_host(message, types) for message in chat.messages_of(request.messages)])
            for request in requests
        ]
    )
    return [_answer(answer.value) for answer in answers]


def _answer(value: Any) -> reward_models.Answer:
    if isinstance(value, host.Error_InvalidRequest):
        return reward_models.InvalidRequest(value.value)
    if isinstance(value, host.Error_Refused):
        return reward_models.Refused(value.value)
    if isinstance(value, host.Error_Unavailable):
        return Unavailable(value.value)
    steps = [reward_models.Step(step.start, step.end, step.value) for step in value.steps]
    return reward_models.Scored(value.score, steps)
