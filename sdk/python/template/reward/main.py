"""Scores 1 if the number after `Answer:` is the ground truth."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gavel import InvalidInput, Reference, Sample, Score, Verdict, abstain, after_last, last_number, reward


@dataclass
class Params:
    """The parameters that a run may set."""

    prefix: str = "Answer:"
    """The text before the answer."""
    tolerance: float = 1e-6
    """How far the answer may be from the ground truth."""

    # Once, before any sample; an error stops a run before it starts.
    def __post_init__(self) -> None:
        if not self.prefix:
            raise ValueError("`prefix` is empty: set it to the text before the answer")


# Once a sample.
@reward(pure=True, score_range=(0, 1))
def score(sample: Sample, reference: Reference, params: Params) -> Verdict:
    if reference.ground_truth is None:
        return abstain("the row has no ground truth")
    truth = number(reference.ground_truth)
    found = number_after(sample.response, params.prefix)
    correct = found is not None and abs(found - truth) <= params.tolerance
    note = "no answer" if found is None else f"the answer is {found}"
    return Score(correct, {"answered": found is not None}, note)


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
