"""What a reward says of a sample."""

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
    """The sample or its reference is not what this plugin works on.

    Raise it from a reward: the sample has no score, and the outcome blames the
    input rather than the plugin.
    """


class Unavailable(Exception):
    """Something that the plugin needs did not answer; trying again may help."""


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
    """A score, and what should be logged beside it."""

    value: float
    """Must be finite, and within the score range that the plugin promises."""
    metrics: dict[str, float] = field(default_factory=dict)
    """Named numbers, averaged and logged by the host."""
    note: str | None = None
    """Why the score is what it is, in words; kept in the log."""
    credit: list[Credit] = field(default_factory=list)


@dataclass(frozen=True)
class Abstained:
    """No score for this sample, which is no failure."""

    reason: str


def abstain(reason: str) -> Abstained:
    """Gives a sample no score, which is no failure: the plugin does not judge
    samples of this kind. `return abstain("why")`."""
    return Abstained(reason)


@dataclass(frozen=True)
class NotCalled:
    """Another reward was not called for the sample: its gate is shut, or it is
    for other data sources."""


@dataclass(frozen=True)
class NoVerdict:
    """Another reward was called for the sample and gave no verdict: a fault, out
    of budget, or unavailable."""


PriorVerdict = Union[Score, Abstained, NotCalled, NoVerdict]
"""What another reward said of a sample."""

Verdict = Union[float, Mapping[str, Any], Score, Abstained]
"""What a reward may return: a number; a dict with `score`, whose other numbers
become metrics and whose texts become the note, as in verl; a `Score`; or
`abstain("why")`."""


def as_verdict(value: object) -> Score | Abstained:
    """What a function returned, as a score or an abstention.

    Raises TypeError or ValueError, saying what it should have returned.
    """
    if isinstance(value, Abstained):
        return Abstained(_text(value.reason))
    if isinstance(value, Score):
        metrics = {_text(name): _finite(f"the metric `{name}`", number) for name, number in value.metrics.items()}
        note = None if value.note is None else _text(value.note)
        return Score(_finite("the score", value.value), metrics, note, [_credit(part) for part in value.credit])
    if isinstance(value, Mapping):
        return _from_mapping(value)
    if value is None:
        raise TypeError('no score was returned, but None: return a number, or `abstain("why")` to give none')
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


def _credit(part: Credit) -> Credit:
    places = {name: _place(name, getattr(part, name)) for name in ("trajectory", "message", "start", "end")}
    return Credit(**places, value=_finite("the `value` of a credit", part.value))


def _place(name: str, value: Any) -> int:
    number = operator.index(value)
    if not 0 <= number < 1 << 32:
        raise ValueError(f"the `{name}` of a credit must be from 0 to 2 ** 32 - 1, not {number}")
    return number


def _text(value: object) -> str:
    # Half of a surrogate pair, which a policy may write as JSON, has no UTF-8.
    return str(value).encode(errors="replace").decode()


def _finite(what: str, value: object) -> float:
    # A text would be read as the number that it spells: "nan", say.
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{what} must be a number, not the text {value!r:.80}")
    try:
        number = float(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{what} must be a number, not {type(value).__name__}") from None
    if not math.isfinite(number):
        raise ValueError(f"{what} must be finite, not {number}")
    return number
