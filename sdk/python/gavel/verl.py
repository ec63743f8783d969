"""Runs a reward function written for verl as a Gavel reward.

`gavel plugin new NAME --from-verl reward.py` writes the `main.py` that uses it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from . import asyncs
from .exports import Export, export
from .params import ParameterError
from .reference import Reference
from .sample import Sample

__all__ = ["from_verl", "scorer"]

_GIVEN = ("data_source", "solution_str", "ground_truth", "extra_info")


def from_verl(
    compute_score: Callable[..., Any],
    *,
    pure: bool = False,
    score_range: tuple[float, float] | None = None,
    version: str = "0.1.0",
) -> Callable[..., Any]:
    """Makes a function `compute_score(data_source, solution_str, ground_truth,
    extra_info, **reward_kwargs)`, plain or async, the component's reward.

    The parameters of the run are its `reward_kwargs`. It returns a number or a
    dict with `score`. Other numbers in the dict become metrics, and texts
    become the note. A row without a ground truth is an `InvalidInput`, as it is
    an error in verl.

    `pure` and `score_range` are promises about the function, as in `reward`.
    """

    def score(sample: Sample, reference: Reference, params: dict[str, Any]) -> Any:
        value = _call(compute_score, sample, reference, params)
        return asyncs.run(value) if inspect.iscoroutine(value) else value

    signature = inspect.signature(compute_score)

    def check(params: dict[str, Any]) -> None:
        for name in params:
            if name in _GIVEN:
                raise ParameterError(f"parameter `{name}`: it comes from the dataset's row")
        try:
            signature.bind(**dict.fromkeys(_GIVEN), **params)
        except TypeError as error:
            name = getattr(compute_score, "__name__", "compute_score")
            raise ParameterError(f"parameters: `{name}{signature}` cannot be called with them: {error}") from None

    takes = ("sample", "reference", "params")
    export("reward", Export(score, takes, dict, version, pure, score_range, check_params=check))
    return score


def scorer(compute_score: Callable[..., Any]) -> Callable[[Sample, Reference], Any]:
    """A function of a sample and its reference that calls one written for verl,
    plain or async."""

    def score(sample: Sample, reference: Reference) -> Any:
        return _call(compute_score, sample, reference, {})

    return score


def _call(compute_score: Callable[..., Any], sample: Sample, reference: Reference, params: dict[str, Any]) -> Any:
    return compute_score(
        data_source=sample.data_source or "",
        solution_str=sample.response,
        # verl requires it, too.
        ground_truth=reference.require_ground_truth_value(),
        extra_info=reference.get("extra_info") or {},
        **params,
    )
