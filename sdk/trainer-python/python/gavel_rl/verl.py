"""Gavel's rewards in verl, as its ``custom_reward_function``.

``python -m gavel_rl.verl`` prints the path of this file, which verl loads::

    reward.custom_reward_function.path=$(python -m gavel_rl.verl)
    reward.custom_reward_function.name=compute_score
    +reward.custom_reward_function.reward_kwargs.rewards='[exact-answer]'
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from gavel_rl.no_score import Tally, flags
from gavel_rl.reward import Reward
from gavel_rl.scorer import Scorer

#: The scorers of this process, by their configuration.
_scorers: dict[tuple[int, str], tuple[Scorer, Tally]] = {}

#: What the last row was scored with. verl passes the same objects with each row, and to compare them takes less time
#: than to read them.
_last: tuple[Any, tuple[Scorer, Tally]] | None = None


async def compute_score(
    data_source: str | None,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    *,
    rewards: Sequence[str | Mapping[str, Any]],
    no_score: float = 0.0,
    **options: Any,
) -> dict[str, Any]:
    """Scores a response.

    verl knows only numbers, so a sample without a score has the score ``no_score``, and a flag: ``gavel_scored`` is 0.
    The keys are the same for every row, as verl needs them.

    Args:
        data_source: As verl passes it.
        solution_str: The response.
        ground_truth: As verl passes it.
        extra_info: As verl passes it.
        rewards: The rewards: the path of each, or a table with the arguments of :class:`gavel_rl.Reward`.
        no_score: The score of a sample without a score.
        options: The other arguments of :class:`gavel_rl.Scorer`. verl's own arguments are ignored.
    """
    config = {name: options[name] for name in _OPTIONS if name in options}
    scorer, tally = _scorer({**config, "rewards": rewards}, no_score)
    row = {
        "response": solution_str,
        "data_source": data_source,
        "reward_model": {"ground_truth": ground_truth},
        "extra_info": extra_info,
    }
    outcome = await scorer.score_async(row)
    tally.add(outcome)
    score = no_score if outcome.reward is None else outcome.reward
    return {"score": score, **flags(outcome, "gavel_"), "gavel_reason": outcome.reason or ""}


_OPTIONS = ("limits", "grants", "chat", "limiter", "exec", "workers", "seed")


def _scorer(config: Mapping[str, Any], no_score: float) -> tuple[Scorer, Tally]:
    global _last
    given = (os.getpid(), no_score, tuple(config.items()))
    if _last is None or _last[0] != given:
        _last = given, _made(config, no_score)
    return _last[1]


def _made(config: Mapping[str, Any], no_score: float) -> tuple[Scorer, Tally]:
    plain = _plain(config)
    key = (os.getpid(), json.dumps([plain, no_score]))
    if key not in _scorers:
        rewards = [reward if isinstance(reward, str) else Reward(**reward) for reward in plain.pop("rewards")]
        _scorers[key] = (Scorer(rewards, **plain), Tally("Gavel in verl", f"has the score {no_score}"))
    return _scorers[key]


def _plain(value: Any) -> Any:
    """A value of a configuration of OmegaConf as a plain one."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(part) for part in value]
    return value


if __name__ == "__main__":
    print(os.path.abspath(__file__))
