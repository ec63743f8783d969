"""The answer key."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from .verdict import InvalidInput

__all__ = ["MissingColumn", "Reference"]


class MissingColumn(InvalidInput, KeyError):
    """The row does not have the requested column."""

    # KeyError would show its message as a literal.
    __str__ = Exception.__str__


_NO_GROUND_TRUTH = (
    "the row has no ground truth: expected `reward_model.ground_truth`, `ground_truth`, `answer` or `solution`"
)


class Reference(Mapping[str, Any]):
    """Everything in the dataset's row: a read-only mapping from columns
    to plain values.

    `reference["level"]` of a row without the column is an `InvalidInput` that
    names it; `reference.get("level")` is `None`. The host makes it. A test
    makes one from a row, or from columns by name:
    `Reference({"answer": "42"})`, `Reference(answer="42", level=3)`.
    """

    def __init__(self, row: Mapping[str, Any] | None = None, /, **columns: Any) -> None:
        # Through JSON, as in the host: a tuple arrives as a list.
        self._columns: dict[str, Any] = json.loads(json.dumps({**(row or {}), **columns}))
        self._handle: Any = None

    @classmethod
    def _from_host(cls, handle: Any) -> Reference:
        reference = cls()
        reference._handle = handle
        return reference

    @property
    def ground_truth(self) -> str | None:
        """`reward_model.ground_truth` of the row, else its column
        `ground_truth`, else `answer`, else `solution`; a value that is not a
        text as JSON. `None` if the row has none."""
        if self._handle is not None:
            return cast("str | None", self._handle.ground_truth())
        value = self.ground_truth_value
        if value is None or isinstance(value, str):
            return value
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    @property
    def ground_truth_value(self) -> Any:
        """The ground truth as in the row: a text, a number, a list."""
        model = self.get("reward_model")
        candidates = [model.get("ground_truth") if isinstance(model, dict) else None]
        candidates += [self.get(name) for name in ("ground_truth", "answer", "solution")]
        return next((value for value in candidates if value is not None), None)

    def require_ground_truth(self) -> str:
        """The ground truth; raises `InvalidInput` if the row has none."""
        truth = self.ground_truth
        if truth is None:
            raise InvalidInput(_NO_GROUND_TRUTH)
        return truth

    def require_ground_truth_value(self) -> Any:
        """The ground truth as in the row; raises `InvalidInput` if the row has
        none."""
        value = self.ground_truth_value
        if value is None:
            raise InvalidInput(_NO_GROUND_TRUTH)
        return value

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise MissingColumn(f"the row has no column `{name}` (its columns: {', '.join(self)})")
        return self._columns[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The column `name`; `default` if the row does not have it."""
        return self._columns[name] if name in self else default

    def __contains__(self, name: object) -> bool:
        if name in self._columns:
            return True
        if self._handle is None or not isinstance(name, str):
            return False
        column = self._handle.column(name)
        if column is None:
            return False
        self._columns[name] = json.loads(column)
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns if self._handle is None else self._handle.column_names())

    def __len__(self) -> int:
        return len(list(iter(self)))

    def to_dict(self) -> dict[str, Any]:
        """All columns."""
        columns = self._columns if self._handle is None else json.loads(self._handle.columns())
        return dict(columns)
