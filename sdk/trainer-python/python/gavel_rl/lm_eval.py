"""Gavel's rewards in tasks of lm-evaluation-harness, as their ``process_results``.

::

    # utils.py, beside the task's YAML, which has `process_results: !function utils.process_results`
    from gavel_rl.lm_eval import ProcessResults

    process_results = ProcessResults(["exact-answer"])
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gavel_rl.adapter import Adapter
from gavel_rl.no_score import flags
from gavel_rl.reward import Reward
from gavel_rl.scorer import Scorer


class ProcessResults:
    """Scores the response to each document.

    A row has the document's columns and the response. The metrics are ``gavel``, the reward, and a flag of 0 or 1 for
    each kind of outcome: ``gavel_scored``, ``gavel_abstained``, ``gavel_fault``, ``gavel_out_of_budget`` and
    ``gavel_unavailable``.

    Args:
        rewards: A scorer, or the rewards of one.
        no_score: The reward of a sample without a score. By default it has none: the mean of ``gavel`` leaves it out,
            and the harness warns that the metrics have different numbers of documents.
        options: The other arguments of :class:`gavel_rl.Scorer`.
    """

    def __init__(
        self,
        rewards: Scorer | Iterable[Reward | str | os.PathLike[str]],
        *,
        no_score: float | None = None,
        **options: Any,
    ) -> None:
        self._adapter = Adapter("Gavel in lm-eval", "is left out of the mean", rewards, no_score, options)

    def __call__(self, doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
        [outcome] = self._adapter.scorer.score([{**doc, "response": results[0]}])
        reward = self._adapter.reward(outcome)
        return {**({} if reward is None else {"gavel": reward}), **flags(outcome, "gavel_")}
