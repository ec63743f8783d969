"""Of the right answers of a group, the shortest scores 1 and the longest a
little less; a wrong answer scores 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gavel import InvalidInput, Reference, Sample, Score, Verdict, abstain, after_last, judger, last_number


@dataclass
class Params:
    """The parameters that a run may set."""

    prefix: str = "Answer:"
    """The text before the answer."""
    penalty: float = 0.2
    """How much the longest right answer loses."""

    # Once, before any group; an error stops a run before it starts.
    def __post_init__(self) -> None:
        if not self.prefix:
            raise ValueError("`prefix` is empty: set it to the text before the answer")
        if not 0 <= self.penalty <= 1:
            raise ValueError(f"`penalty` must be between 0 and 1, not {self.penalty}")


# Once a group: one verdict for each sample, in order.
@judger(pure=True, score_range=(0, 1))
def judge(samples: Sequence[Sample], reference: Reference, params: Params) -> list[Verdict]:
    if reference.ground_truth is None:
        return [abstain("the row has no ground truth") for _ in samples]
    truth = number(reference.ground_truth)
    responses = [sample.response for sample in samples]
    correct = [number_after(response, params.prefix) == truth for response in responses]
    lengths = [len(response.encode()) for response in responses]
    values = scores(correct, lengths, params.penalty)
    return [Score(value, {"correct": right}) for value, right in zip(values, correct)]


def scores(correct: Sequence[bool], lengths: Sequence[int], penalty: float) -> list[float]:
    """A score for each attempt, in order."""
    right = [length for length, is_right in zip(lengths, correct) if is_right]
    shortest, longest = min(right, default=0), max(right, default=0)
    spread = max(longest - shortest, 1)
    return [
        1 - penalty * (length - shortest) / spread if is_right else 0.0 for length, is_right in zip(lengths, correct)
    ]


def number(truth: str) -> float:
    """The ground truth as a number, which "nan" is not."""
    try:
        value = float(truth)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InvalidInput(f"the ground truth `{truth}` is not a number")
    return value


def number_after(response: str, prefix: str) -> float | None:
    """The last number on the line after the last `prefix`."""
    line = after_last(response, prefix)
    return None if line is None else last_number(line)
