"""A reward that compares the state in which a tool ended with the state in the ground truth."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from gavel import InvalidInput, Reference, Sample, Score, reward


@dataclass
class Params:
    tool: str
    """The name of the tool in the run."""


@reward(pure=True, score_range=(0, 1))
def score(sample: Sample, reference: Reference, params: Params) -> Score:
    expected = _expected(reference.require_ground_truth())
    # A tool has one state in a sample, whichever of its conversations called it.
    state = sample.trajectories[0].state(params.tool) if sample.trajectories else None
    fields = state if isinstance(state, dict) else {}
    wrong = [name for name, value in expected.items() if name not in fields or not _same(value, fields[name])]
    right = (len(expected) - len(wrong)) / len(expected)
    note = f"the tool `{params.tool}` reported no state" if state is None else None
    return Score(float(not wrong), metrics={"right_fields": right}, note=note, payload={"wrong": wrong})


def _expected(truth: str) -> dict[str, Any]:
    """The fields that the state must have."""
    try:
        fields = json.loads(truth)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"the ground truth is not an object with fields of the state: {error}") from None
    if not isinstance(fields, dict):
        raise InvalidInput(f"the ground truth is not an object with fields of the state: {truth}")
    if not fields:
        raise InvalidInput("the ground truth has no field: every state would be right")
    return fields


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal. 2 and 2.0 are, and 1 and true are not, unlike in Python."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[name]) for name, value in one.items())
    return bool(one == other)
