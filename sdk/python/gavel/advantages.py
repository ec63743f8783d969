"""Advantages: how much better than expected each sample of a step was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

from .sample import FinishReason

__all__ = ["Estimates", "Group", "Part", "SampleAdvantage", "ScoredSample", "TokenCredit", "Trajectory", "of_samples"]

SampleAdvantage = Union[float, Sequence[float], Sequence[Sequence[float]]]
"""The advantage of a sample: a number for all its tokens, one for each
trajectory, or for each trajectory one for each token after the prompt. Credit
is added, except to an advantage of tokens."""


@dataclass
class Part:
    """The verdict of one reward on a sample."""

    reward: str
    """The name of the reward in the run's configuration."""
    score: float | None
    """`None` if it gave none."""
    weight: float = 1.0
    """The factor of the score in the sample's reward; 0 if it is only recorded."""
    counted: float = 0.0
    """What it counts with: its score, or 0 if it was not called. Rewards that
    failed share the rest of the reward that the run gives such a sample."""
    metrics: dict[str, float] = field(default_factory=dict)
    """The metrics of the score."""


@dataclass
class TokenCredit:
    """Credit for tokens `[start, end)` of those after the prompt, times the
    weights of the rewards that gave it."""

    start: int
    end: int
    value: float


@dataclass
class Trajectory:
    """The numbers of one conversation of a sample."""

    response_tokens: int = 0
    """The number of tokens after the prompt, with those that the policy did not
    write."""
    learned: list[tuple[int, int]] = field(default_factory=list)
    """The tokens `[start, end)` that are learned from, turn by turn."""
    index: int = 0
    """Its number in its sample, from 0."""
    finish_reason: FinishReason = "stop"
    prompt_tokens: int = 0
    credit: list[TokenCredit] = field(default_factory=list)
    penalty: float = 0.0
    """The sum of the penalties of its learned tokens (`train.kl_reward`)."""
    logprob: float = 0.0
    """The sum of the log-probabilities of its learned tokens when they were
    drawn."""
    oldest_version: int | None = None
    newest_version: int | None = None
    """The versions of the policy that drew its learned tokens."""

    @property
    def learned_tokens(self) -> int:
        """The number of tokens that are learned from."""
        return sum(end - start for start, end in self.learned)

    def spread(self, value: float) -> list[float]:
        """The same value for all learned tokens, and 0 for the others."""
        values = [0.0] * self.response_tokens
        for start, end in self.learned:
            values[start:end] = [value] * (end - start)
        return values


@dataclass
class ScoredSample:
    """A sample that has a reward."""

    reward: float
    """Its reward, minus the mean of the penalties of its trajectories: what the
    built-in algorithms compare."""
    trajectories: list[Trajectory] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    """One for each reward of the run, in the order of their names."""
    index: int = 0
    """Its number in its group, from 0."""


@dataclass
class Group:
    """Samples that are compared: attempts at one task."""

    samples: list[ScoredSample]
    task_id: str = ""
    data_source: str | None = None
    speaker: str = ""
    """If the run compares the trajectories of each speaker by themselves, the
    speaker of these; empty otherwise."""

    @property
    def rewards(self) -> list[float]:
        """The reward of each sample."""
        return [sample.reward for sample in self.samples]


@dataclass
class Estimates:
    """Advantages, and what the next call gets as `state`."""

    advantages: Sequence[Sequence[SampleAdvantage]]
    """For each group, one for each sample, in order."""
    state: bytes = b""
    """At most 1 MiB. It is in the run's checkpoints."""


def of_samples(groups: Sequence[Group], of_group: Callable[[Group], Sequence[float]]) -> list[list[float]]:
    """The advantages of all samples, where `of_group` gives those of a group."""
    return [list(of_group(group)) for group in groups]


def _group(group: Any) -> Group:
    """A group of the host."""
    return Group([_sample(sample) for sample in group.samples], group.task_id, group.data_source, group.speaker)


def _sample(sample: Any) -> ScoredSample:
    parts = [
        Part(part.reward, part.score, part.weight, part.counted, {metric.name: metric.value for metric in part.metrics})
        for part in sample.parts
    ]
    return ScoredSample(sample.reward, [_trajectory(one) for one in sample.trajectories], parts, sample.index)


def _trajectory(one: Any) -> Trajectory:
    return Trajectory(
        response_tokens=one.response_tokens,
        learned=[(span.start, span.end) for span in one.learned],
        index=one.index,
        finish_reason=one.finish_reason.name.lower().replace("_", "-"),
        prompt_tokens=one.prompt_tokens,
        credit=[TokenCredit(part.tokens.start, part.tokens.end, part.value) for part in one.credit],
        penalty=one.penalty,
        logprob=one.logprob,
        oldest_version=one.oldest_version,
        newest_version=one.newest_version,
    )


def _as_estimates(value: Any) -> Estimates:
    """What a function returned; TypeError if it is neither advantages nor `Estimates`."""
    if isinstance(value, Estimates):
        return value
    if isinstance(value, (str, dict)) or not hasattr(value, "__iter__"):
        raise TypeError(f"an advantage returns a list of advantages for each group, not {value!r:.80}")
    return Estimates(value)


def _form(advantage: Any) -> tuple[str, Any]:
    """The form of a sample's advantage, and its numbers."""
    if not hasattr(advantage, "__iter__"):
        return "Sample", float(advantage)
    values = list(advantage)
    if any(hasattr(value, "__iter__") for value in values):
        return "Tokens", [[float(number) for number in value] for value in values]
    return "Trajectories", [float(value) for value in values]
