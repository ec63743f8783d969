"""Gavel's rewards in TRL's trainers.

::

    from gavel_rl.trl import RewardFunction

    trainer = GRPOTrainer(model=..., reward_funcs=RewardFunction(["exact-answer"]), train_dataset=...)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gavel_rl._native import Outcome
from gavel_rl.adapter import Adapter
from gavel_rl.no_score import KINDS
from gavel_rl.reward import Reward
from gavel_rl.scorer import Scorer

#: What TRL passes beside the columns of the dataset.
_NOT_COLUMNS = frozenset({"completion_ids", "trainer_state", "log_extra", "log_metric", "environments"})


class RewardFunction:
    """A reward function for ``reward_funcs`` of a trainer of TRL.

    Args:
        rewards: A scorer, or the rewards of one.
        no_score: The reward of a sample without a score. By default it is None: TRL leaves the sample out of this
            function's rewards, and its advantage is 0 if no other function scores it.
        name: Its name in TRL's logs.
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
        self._adapter = Adapter(f"{name} in TRL", "has no reward from it", rewards, no_score, options)

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Any], **arguments: Any) -> list[float | None]:
        columns = {name: values for name, values in arguments.items() if name not in _NOT_COLUMNS}
        rows = [
            {**{name: values[at] for name, values in columns.items()}, "prompt": prompt, "completion": completion}
            for at, (prompt, completion) in enumerate(zip(prompts, completions))
        ]
        outcomes = self._adapter.scorer.score(_with_groups(rows))
        _log(outcomes, arguments.get("log_extra"), arguments.get("log_metric"), self.__name__)
        return [self._adapter.reward(outcome) for outcome in outcomes]


def _with_groups(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, with an id for each group if they have none: TRL puts the completions of a prompt next to each other."""
    group = -1
    for at, row in enumerate(rows):
        if at == 0 or row["prompt"] != rows[at - 1]["prompt"]:
            group += 1
        row.setdefault("id", f"group-{group}")
    return rows


def _log(
    outcomes: list[Outcome],
    log_extra: Callable[[str, list[Any]], None] | None,
    log_metric: Callable[[str, float], None] | None,
    name: str,
) -> None:
    if log_extra is not None:
        log_extra(f"{name}_outcome", [outcome.kind for outcome in outcomes])
        log_extra(f"{name}_reason", [outcome.reason or "" for outcome in outcomes])
    if log_metric is not None and outcomes:
        for kind in KINDS:
            log_metric(f"{name}/{kind}", sum(outcome.kind == kind for outcome in outcomes) / len(outcomes))
        scores: dict[str, list[float]] = {}
        for outcome in outcomes:
            for reward, call in outcome.rewards.items():
                if call.score is not None:
                    scores.setdefault(reward, []).append(call.score)
        for reward, values in scores.items():
            log_metric(f"{name}/{reward}/mean", sum(values) / len(values))
