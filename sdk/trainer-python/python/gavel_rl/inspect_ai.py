"""Gavel's rewards in tasks of inspect-ai.

::

    from inspect_ai import Task
    from gavel_rl.inspect_ai import gavel_scorer

    task = Task(dataset=..., solver=..., scorer=gavel_scorer(["exact-answer"]))
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageTool
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from gavel_rl.adapter import Adapter
from gavel_rl.reward import Reward


@scorer(metrics=[mean(), stderr()], name="gavel")
def gavel_scorer(
    rewards: Sequence[Reward | Mapping[str, Any] | str | os.PathLike[str]],
    *,
    no_score: float | None = None,
    **options: Any,
) -> Scorer:
    """Scores samples with rewards.

    A row has the sample's metadata, its input as the prompt, the messages after it as the completion, and its target as
    the ground truth. A score has the outcome in its metadata, and in ``explanation`` why there is no score.

    Args:
        rewards: The rewards: paths, rewards, or tables with the arguments of :class:`gavel_rl.Reward`, as
            ``inspect score`` has them. A judger needs whole groups, and is refused.
        no_score: The value of a sample without a score. By default it is unscored: its value is NaN, and metrics leave
            it out. Its ``reason`` is the kind of its outcome.
        options: The other arguments of :class:`gavel_rl.Scorer`.
    """
    named = [Reward(**reward) if isinstance(reward, Mapping) else reward for reward in rewards]
    adapter = Adapter("Gavel in inspect-ai", "is unscored, and no metric counts it", named, no_score, options)

    async def score(state: TaskState, target: Target) -> Score:
        outcome = await adapter.scorer.score_async(_row(state, target))
        value = adapter.reward(outcome)
        about = json.loads(outcome.to_json())
        if outcome.reward is not None:
            return Score(value=value, metadata=about)
        if value is None:
            return Score.unscored(reason=outcome.kind, explanation=outcome.reason, metadata=about)
        return Score(value=value, reason=outcome.kind, explanation=outcome.reason, metadata=about)

    return score


def _row(state: TaskState, target: Target) -> dict[str, Any]:
    messages = state.messages
    first = next((at for at, message in enumerate(messages) if message.source == "generate"), len(messages))
    return {
        "ground_truth": target[0] if len(target) == 1 else list(target),
        **state.metadata,
        "id": str(state.sample_id),
        "prompt": [_message(message) for message in messages[:first]],
        "completion": [_message(message) for message in messages[first:]],
    }


def _message(message: ChatMessage) -> dict[str, Any]:
    """A message as OpenAI has it. Of its content, the text."""
    plain: dict[str, Any] = {"role": message.role, "content": message.text}
    if isinstance(message, ChatMessageTool) and message.tool_call_id is not None:
        plain["tool_call_id"] = message.tool_call_id
    if isinstance(message, ChatMessageAssistant) and message.tool_calls:
        plain["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.function, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    return plain
