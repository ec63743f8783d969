"""Runs a reward function written for TRL as a Gavel reward.

`gavel plugin new NAME --from-trl reward.py` writes the `main.py` that uses it.
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
from .verdict import InvalidInput, abstain

__all__ = ["from_trl"]


def from_trl(
    function: Callable[..., Any],
    *,
    pure: bool = False,
    score_range: tuple[float, float] | None = None,
    version: str = "0.1.0",
) -> Callable[..., Any]:
    """Makes a function `f(prompts, completions, **columns)`, plain or async, the
    component's reward. It is called with lists of one; `None` abstains.

    If the row's `prompt` is a list of messages, prompt and completion are lists
    of messages, else texts, as in TRL. The parameters of the run are passed by
    name and replace columns of the same name.

    A row without a column that the function requires is an `InvalidInput` that
    names it. `pure` and `score_range` are promises about the function, as in
    `reward`.

    Raises SystemExit if the function takes `completion_ids`: there are none,
    and an empty list would silently give a wrong score.
    """
    signature = inspect.signature(function)
    names = set(signature.parameters)
    if "completion_ids" in names:
        raise SystemExit(
            f"`{function.__name__}` takes `completion_ids`, and a plugin has no tokens\n"
            "hint: let it work on the texts in `completions`"
        )
    required = [name for name, kind in signature.parameters.items() if kind.default is kind.empty and kind.kind in _NAMED]
    takes_any = any(kind.kind is inspect.Parameter.VAR_KEYWORD for kind in signature.parameters.values())

    def score(sample: Sample, reference: Reference, params: dict[str, Any]) -> Any:
        row = reference.to_dict()
        if isinstance(row.get("prompt"), list):
            prompt: Any = [message.to_dict() for message in sample.prompt]
            completion: Any = [message.to_dict() for message in sample.messages]
        else:
            prompt, completion = sample.prompt[-1].text if sample.prompt else "", sample.response
        arguments: dict[str, Any] = {name: [value] for name, value in row.items() if name not in _NOT_COLUMNS}
        arguments |= {"prompts": [prompt], "completions": [completion], **_OF_A_TRAINER, **params}
        lacking = [name for name in required if name not in arguments]
        if lacking:
            raise InvalidInput(
                f"the row has no column `{lacking[0]}`, which `{function.__name__}` takes (its columns: {', '.join(row)})"
            )
        given = arguments if takes_any else {name: arguments[name] for name in names if name in arguments}
        rewards = function(**given)
        if inspect.iscoroutine(rewards):
            rewards = asyncs.run(rewards)
        if len(rewards) != 1:
            raise ValueError(f"the function returned {len(rewards)} rewards for one completion")
        return abstain("the function returned None") if rewards[0] is None else rewards[0]

    def check(params: dict[str, Any]) -> None:
        for name in params:
            if name in ("prompts", "completions", "completion_ids", *_OF_A_TRAINER):
                raise ParameterError(f"`{name}` is not a parameter: it comes with each sample")
            if not takes_any and name not in names:
                raise ParameterError(f"unknown parameter `{name}`: the function takes {signature}")

    takes = ("sample", "reference", "params")
    export("reward", Export(score, takes, dict, version, pure, score_range, check_params=check))
    return score


_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

# TRL passes these in their own way.
_NOT_COLUMNS = ("prompt", "completion", "completion_ids")


def _ignore(*_: Any, **__: Any) -> None:
    """Replaces TRL's logging, which a single sample does not have."""


_OF_A_TRAINER = {"trainer_state": None, "log_extra": _ignore, "log_metric": _ignore}
