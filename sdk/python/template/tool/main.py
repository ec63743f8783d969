"""A tool with which the policy guesses a number that the row sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from gavel import InvalidInput, tool


@dataclass
class Params:
    """The parameters that a run may set."""

    guesses: int = 10
    """How many guesses the policy has."""

    # Once, before any trajectory; an error stops a run before it starts.
    def __post_init__(self) -> None:
        if self.guesses < 1:
            raise ValueError(f"`guesses` must be 1 or more, not {self.guesses}")


# An instance for each trajectory. The policy may call its methods; it does not see the settings.
@tool
class Game:
    def __init__(self, settings: dict[str, Any], params: Params) -> None:
        number = settings.get("number")
        if not isinstance(number, int):
            raise InvalidInput("the row sets no `number`")
        self._number = number
        self._left = params.guesses

    def guess(self, number: Annotated[int, {"minimum": 1, "maximum": 100}]) -> str:
        """Guesses the number. Returns "right", or whether the number is "higher" or "lower".

        Args:
            number: The guess.
        """
        if self._left == 0:
            raise InvalidInput("no guess is left")
        self._left -= 1
        if number == self._number:
            return "right"
        return "higher" if number < self._number else "lower"

    def guesses_left(self) -> int:
        """Returns how many guesses are left."""
        return self._left
