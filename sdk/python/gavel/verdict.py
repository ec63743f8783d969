"""The verdicts of a reward on a sample."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

__all__ = [
    "Abstained",
    "Credit",
    "InvalidInput",
    "NoVerdict",
    "NotCalled",
    "PriorVerdict",
    "Score",
    "Unavailable",
    "Verdict",
    "abstain",
    "as_verdict",
]


class InvalidInput(Exception):
    """The plugin cannot work on this sample or its reference.

    Raise it from a reward: the sample has no score, and the outcome blames the
    input, not the plugin.
    """


class Unavailable(Exception):
    """A service that the plugin needs did not answer; another attempt may succeed."""


@dataclass(frozen=True)
class Credit:
    """Credit for a part of a sample: bytes `[start, end)` of the UTF-8 text of
    one message of one trajectory."""

    trajectory: int
    message: int
    start: int
    end: int
    value: float


@dataclass
class Score:
    """A score, and what is recorded with it."""

    value: float
    """Must be finite, and within the score range that the plugin promises."""
    metrics: dict[str, float] = field(default_factory=dict)
    """Named numbers, averaged and logged by the host."""
    note: str | None = None
    """A note that explains the score; it is recorded."""
    credit: list[Credit] = field(default_factory=list)
    payload: Mapping[str, Any] | None = None
    """An object of your own, as JSON; it is recorded, and the rewards that list
    this one in `after` read it."""


@dataclass(frozen=True)
class Abstained:
    """No score for this sample. This is not a failure."""

    reason: str


def abstain(reason: str) -> Abstained:
    """Gives a sample no score: `return abstain("why")`. This is not a failure:
    the plugin does not judge samples of this kind."""
    return Abstained(reason)


@dataclass(frozen=True)
class NotCalled:
    """Another reward was not called for the sample: its gate is shut, or it is
    for other data sources."""


@dataclass(frozen=True)
class NoVerdict:
    """Another reward was called for the sample but gave no verdict: a fault,
    out of budget, or unavailable."""


PriorVerdict = Union[Score, Abstained, NotCalled, NoVerdict]
"""The verdict of another reward on a sample."""

Verdict = Union[float, Mapping[str, Any], Score, Abstained]
"""The values that a reward may return: a number, a dict with `score`, a
`Score`, or `abstain("why")`. As in verl, other numbers of the dict become
metrics and texts become the note."""


def as_verdict(value: object) -> Score | Abstained:
    """Converts the value that a function returned to a score or an abstention.

    Raises TypeError or ValueError, naming the values that it may return.
    """
    if isinstance(value, Abstained):
        return Abstained(_text(value.reason))
    if isinstance(value, Score):
        metrics = {_text(name): _finite(f"the metric `{name}`", number) for name, number in value.metrics.items()}
        note = None if value.note is None else _text(value.note)
        credit = [_credit(part) for part in value.credit]
        return Score(_finite("the score", value.value), metrics, note, credit, _payload(value.payload))
    if isinstance(value, Mapping):
        return _from_mapping(value)
    if value is None:
        raise TypeError('None was returned instead of a score: return a number, or `abstain("why")` to give none')
    return Score(_finite("the score", value))


def _from_mapping(value: Mapping[str, Any]) -> Score:
    if "score" not in value:
        keys = ", ".join(f"`{key}`" for key in value) or "none"
        raise ValueError(f"the returned dict has no `score` (its keys: {keys})")
    score = Score(_finite("the score", value["score"]))
    notes = []
    for name, item in value.items():
        if name == "score" or item is None:
            continue
        if isinstance(item, str):
            notes.append(f"{name}: {item}")
        elif isinstance(item, (Mapping, Sequence, set, frozenset)):
            notes.append(f"{name}: {json.dumps(item, default=str, ensure_ascii=False)}")
        else:
            score.metrics[_text(name)] = _finite(f"`{name}`", item)
    score.note = _text("\n".join(notes)) or None
    return score


def _payload(payload: object) -> Mapping[str, Any] | None:
    if payload is not None and not isinstance(payload, Mapping):
        raise TypeError(f"the `payload` of a score must be a dict, not {type(payload).__name__}")
    return payload


def _credit(part: Credit) -> Credit:
    places = {name: _place(name, getattr(part, name)) for name in ("trajectory", "message", "start", "end")}
    return Credit(**places, value=_finite("the `value` of a credit", part.value))


def _place(name: str, value: Any) -> int:
    number = operator.index(value)
    if not 0 <= number < 1 << 32:
        raise ValueError(f"the `{name}` of a credit must be from 0 to 2 ** 32 - 1, not {number}")
    return number


def _text(value: object) -> str:
    # Half of a surrogate pair, which a policy may write in JSON, cannot be encoded as UTF-8.
    return str(value).encode(errors="replace").decode()


def _finite(what: str, value: object) -> float:
    # A text such as "nan" would be read as a number.
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{what} must be a number, not the text {value!r:.80}")
    try:
        number = float(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{what} must be a number, not {type(value).__name__}") from None
    if not math.isfinite(number):
        raise ValueError(f"{what} must be finite, not {number}")
    return number
