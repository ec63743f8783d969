from typing import Any

from gavel import final_state, tool


@tool
class Sums:
    """Adds, and reports the sum in which it ended, unless that is 0."""

    def __init__(self) -> None:
        self._sum = 0

    def add(self, by: int) -> int:
        """Adds."""
        self._sum += by
        return self._sum

    @final_state
    def state(self) -> dict[str, Any] | None:
        return {"sum": self._sum, "é": [None]} if self._sum else None
