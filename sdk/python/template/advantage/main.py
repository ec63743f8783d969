"""The reward of a sample minus the mean of its group, divided by the deviation of the group, or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from gavel import Group, advantage

EPSILON = 1e-6
"""Keeps a division by the deviation finite."""


@dataclass
class Params:
    """The keys of `[plugin.{{name}}.params]` in a run's configuration."""

    scale: str = "group"
    """What a difference is divided by: `group` for the deviation of the group, or `none`."""

    # Once, before any step; an error stops a run before it starts.
    def __post_init__(self) -> None:
        if self.scale not in ("group", "none"):
            raise ValueError(f'`scale` must be "group" or "none", not {self.scale!r}')


# Once for the groups that the policy learns from at once: an advantage for each sample of each group.
@advantage(pure=True)
def estimate(groups: list[Group], params: Params) -> list[list[float]]:
    return [of_group(group.rewards, scaled=params.scale == "group") for group in groups]


def of_group(rewards: Sequence[float], scaled: bool) -> list[float]:
    """The advantages of the samples of a group, exactly 0 where all rewards are equal."""
    if all(reward == rewards[0] for reward in rewards):
        return [0.0] * len(rewards)
    mean = sum(rewards) / len(rewards)
    squares = sum((reward - mean) ** 2 for reward in rewards)
    divisor = sqrt(squares / (len(rewards) - 1)) + EPSILON if scaled else 1.0
    return [(reward - mean) / divisor for reward in rewards]
