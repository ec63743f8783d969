"""What the functions for other libraries have in common."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from gavel_rl._native import Outcome
from gavel_rl.no_score import Tally
from gavel_rl.reward import Reward
from gavel_rl.scorer import Scorer


class Adapter:
    """The scorer of a function for a library, and what a sample without a score becomes there.

    Args:
        library: The function's name in logs.
        without_score: What such a sample becomes by default, in words.
        rewards: A scorer, or the rewards of one.
        no_score: The reward of such a sample in place of that.
        options: The other arguments of :class:`gavel_rl.Scorer`.
    """

    def __init__(
        self,
        library: str,
        without_score: str,
        rewards: Scorer | Iterable[Reward | str | os.PathLike[str]],
        no_score: float | None,
        options: dict[str, Any],
    ) -> None:
        self.scorer = rewards if isinstance(rewards, Scorer) else Scorer(rewards, **options)
        self._library = library
        self._without_score = without_score if no_score is None else f"has the reward {no_score}"
        self._no_score = no_score
        self._tally: Tally | None = None

    def reward(self, outcome: Outcome) -> float | None:
        """Counts a sample, and returns its reward; None if it has none."""
        if self._tally is None:
            self._tally = Tally(self._library, self._without_score)
        self._tally.add(outcome)
        return self._no_score if outcome.reward is None else outcome.reward

    def __getstate__(self) -> dict[str, Any]:
        # Each process counts its own samples.
        return {**self.__dict__, "_tally": None}
