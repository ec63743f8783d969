"""Gavel's rewards in tasks of verifiers 0.4, and so in prime-rl.

::

    import verifiers.v1 as vf
    from gavel_rl.verifiers import RewardFunction

    class SumTask(vf.Task[SumData]):
        gavel = vf.reward(RewardFunction(["exact-answer"]))
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from gavel_rl.adapter import Adapter
from gavel_rl.no_score import KINDS
from gavel_rl.reward import Reward
from gavel_rl.scorer import Scorer


class NoScore(Exception):
    """A sample has no score: its reward abstained, failed, ran out of its budget or is unavailable."""


class RewardFunction:
    """A reward of a task: an attribute of its class, or a function that a configuration plugs in.

    A row has the fields of the task's data, the messages before the policy's first as its prompt, and the others as
    its completion. The trace keeps the outcome in ``info``, and as metrics the flag of its kind and the score of each
    reward.

    Args:
        rewards: A scorer, or the rewards of one. A judger needs whole groups, and is refused.
        no_score: The reward of a sample without a score. By default the trace fails: it has the error ``TaskError``
            and no reward. verifiers may run it again (``retries``), and prime-rl leaves it out of its group.
        name: The name of the reward and of its metrics.
        options: The other arguments of :class:`gavel_rl.Scorer`.
    """

    def __init__(
        self,
        rewards: Scorer | Iterable[Reward | str | os.PathLike[str]],
        *,
        no_score: float | None = None,
        name: str = "gavel",
        **options: Any,
    ) -> None:
        self.__name__ = name
        self._adapter = Adapter(f"{name} in verifiers", "fails its trace", rewards, no_score, options)

    async def __call__(self, task: Any, trace: Any) -> float:
        name = self.__name__
        outcome = await self._adapter.scorer.score_async(_row(task, trace))
        given = self._adapter.reward(outcome)
        trace.info[name] = json.loads(outcome.to_json())
        trace.record_metrics({f"{name}/{kind}": outcome.kind == kind for kind in KINDS})
        for reward, call in outcome.rewards.items():
            if call.score is not None:
                trace.record_metric(f"{name}/{reward}/score", call.score)
        if given is None:
            raise NoScore(f"{outcome.kind}: {outcome.reason}")
        return given


def _row(task: Any, trace: Any) -> dict[str, Any]:
    branches = trace.branches
    nodes = branches[-1].nodes if branches else []
    first = next((at for at, node in enumerate(nodes) if node.sampled), len(nodes))
    messages = [_message(node.message.model_dump(exclude_none=True)) for node in nodes]
    # The data has a prompt, unless somebody else opens the conversation; the policy saw the messages.
    columns = task.model_dump(mode="json", exclude_none=True)
    return {"id": trace.id, **columns, "prompt": messages[:first], "completion": messages[first:]}


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as OpenAI has it, whose calls name their function within ``function``."""
    plain = {name: value for name, value in message.items() if name != "provider_state"}
    if calls := message.get("tool_calls"):
        plain["tool_calls"] = [
            {"id": call["id"], "type": "function", "function": {key: call[key] for key in ("name", "arguments")}}
            for call in calls
        ]
    return plain
