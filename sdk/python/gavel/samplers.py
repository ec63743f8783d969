"""Samplers: which task a run draws next, and which group it trains on."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Union

__all__ = ["Dataset", "Draws", "EndedGroup", "EndedSample", "Request", "SampleOutcome", "Task"]

SampleOutcome = Literal["scored", "abstained", "fault", "out-of-budget", "unavailable"]
"""How the scoring of a sample ended."""

Task = Union[int, tuple[int, int]]
"""A row counted over all datasets, from 0; or a dataset and its row."""


@dataclass
class Dataset:
    """A dataset of `data.train`."""

    rows: int
    """The number of its rows that can be drawn, at least 1."""
    weight: float | None = None
    """Its weight in the run's configuration."""


@dataclass
class EndedSample:
    """An attempt at a task."""

    reward: float | None
    """The reward that it counts with; `None` if it is left out of its group."""
    outcome: SampleOutcome = "scored"
    metrics: dict[str, float] = field(default_factory=dict)
    """The score of each reward under its name in the run's configuration, and
    the metrics of the score as `NAME/METRIC`."""


@dataclass
class EndedGroup:
    """A group whose samples all have their outcomes, before it is trained on."""

    draw: int
    """The number of its draw in the run, from 0."""
    row: int
    """Its row, counted over all datasets, from 0."""
    samples: list[EndedSample]
    dataset: int = 0
    """The number of its dataset, from 0."""
    task_id: str = ""
    data_source: str | None = None
    version: int = 0
    """The version of the policy under which it was started."""
    dropped: str | None = None
    """Why the run does not train on it, if it does not: `equal-rewards` or
    `too-few-scored`."""

    @property
    def rewards(self) -> list[float]:
        """The rewards of the samples that have one."""
        return [sample.reward for sample in self.samples if sample.reward is not None]

    @property
    def mean_reward(self) -> float | None:
        """Their mean; `None` if no sample has a reward."""
        rewards = self.rewards
        return sum(rewards) / len(rewards) if rewards else None


@dataclass
class Request:
    """What a run asks."""

    datasets: list[Dataset]
    wanted: int = 0
    """The number of tasks that are needed; 0 if the call is about `ended`
    alone."""
    ended: list[EndedGroup] = field(default_factory=list)
    """The groups that ended since the last call: in the order of their draws,
    or, where the order of a run depends on time, in the order in which they
    ended."""
    state: bytes = b""
    """What the last call returned; empty in the first call of a run."""
    seed: int = 0
    """The seed of this call's random choices, as for `random.Random`."""
    step: int = 1
    """From 1; the policy that learns has the version before it."""
    next_draw: int = 0
    """The number of the first draw that the tasks are for."""

    @property
    def rows(self) -> int:
        """The number of rows of all datasets."""
        return sum(dataset.rows for dataset in self.datasets)


@dataclass
class Draws:
    """The next tasks, the groups that are refused, and what the next call gets
    as `state`."""

    draws: Sequence[Task]
    """As many as the request wants, in order."""
    refusals: Mapping[int, str] = field(default_factory=dict)
    """By the draw of a group, the name by which the run counts that the group is
    not trained on: 1 to 64 letters, digits, `_`, `.`, `/` or `-`."""
    state: bytes = b""
    """At most 1 MiB. It is in the run's checkpoints."""


def _request(request: Any) -> Request:
    """A request of the host."""
    datasets = [Dataset(dataset.rows, dataset.weight) for dataset in request.datasets]
    firsts = [sum(dataset.rows for dataset in datasets[:number]) for number in range(len(datasets))]
    return Request(
        datasets=datasets,
        wanted=request.wanted,
        ended=[_group(group, firsts) for group in request.ended],
        state=request.state,
        seed=request.seed,
        step=request.step,
        next_draw=request.next_draw,
    )


def _group(group: Any, firsts: Sequence[int]) -> EndedGroup:
    return EndedGroup(
        draw=group.draw,
        row=firsts[group.task.dataset] + group.task.row,
        samples=[_sample(sample) for sample in group.samples],
        dataset=group.task.dataset,
        task_id=group.task_id,
        data_source=group.data_source,
        version=group.version,
        dropped=group.dropped,
    )


def _sample(sample: Any) -> EndedSample:
    outcome = sample.outcome.name.lower().replace("_", "-")
    return EndedSample(sample.reward, outcome, {metric.name: metric.value for metric in sample.metrics})


def _as_draws(value: Any) -> Draws:
    """What a function returned; TypeError if it is neither tasks nor `Draws`."""
    if isinstance(value, Draws):
        return value
    if isinstance(value, (str, dict)) or not hasattr(value, "__iter__"):
        raise TypeError(f"a sampler returns a list of tasks, not {value!r:.80}")
    return Draws(list(value))


def _as_refusals(value: Any) -> list[tuple[int, str]]:
    """The draws of the groups that are refused, each with the reason."""
    if not isinstance(value, Mapping):
        raise TypeError(f"the `refusals` are a dict with the reason for each draw, not {value!r:.80}")
    refusals = []
    for draw, reason in value.items():
        number = _whole(draw, bits=64)
        if number is None or not isinstance(reason, str):
            raise TypeError(f"the `refusals` have a str for the number of a draw, not {reason!r:.80} for {draw!r:.80}")
        refusals.append((number, reason))
    return refusals


def _place(task: Any, datasets: Sequence[Dataset]) -> tuple[int, int]:
    """The dataset and the row of a task. A row that does not exist is of a
    dataset that does not exist, which the host refuses."""
    row = _whole(task, bits=64)
    if row is not None:
        for number, dataset in enumerate(datasets):
            if row < dataset.rows:
                return number, row
            row -= dataset.rows
        return len(datasets), row
    if isinstance(task, (tuple, list)) and len(task) == 2:
        dataset_number, row = _whole(task[0], bits=32), _whole(task[1], bits=64)
        if dataset_number is not None and row is not None:
            return dataset_number, row
    raise TypeError(f"a sampler draws a row, or a tuple of a dataset and a row, not {task!r:.80}")


def _whole(value: Any, bits: int) -> int | None:
    """A number from 0 of any type of integers, such as numpy's, in so many bits; None for anything else."""
    try:
        number = operator.index(value)
    except TypeError:
        return None
    return number if 0 <= number < 1 << bits else None
