"""A tool with which the policy runs Python code, in a session of its own."""

from __future__ import annotations

import gc
import os
import random
from dataclasses import dataclass

import library  # for its side effects
from absent import explain_what_is_absent
from cells import Cells
from gavel import tool
from output import Output

# The limit is for servers, whose requests have no time limit.
library.allow_long_numbers()
# These objects stay alive: the garbage collector need not look through them.
gc.freeze()


@dataclass
class Params:
    """The parameters that a run may set."""

    answer_chars: int = 8000
    """The most characters of an answer."""

    def __post_init__(self) -> None:
        if self.answer_chars < 100:
            raise ValueError(f"`answer_chars` must be 100 or more, not {self.answer_chars}")


@tool
class Session:
    def __init__(self, params: Params) -> None:
        # Python was seeded when the component was built.
        random.seed(os.urandom(16))
        self._output = Output(params.answer_chars)
        self._cells = Cells(self._output)
        explain_what_is_absent()

    def python(self, code: str) -> str:
        """Runs Python code in a session: variables, functions and imports stay for later calls. Returns what the code
        prints, and the value of its last line if that is an expression. There are no files and there is no network.

        Args:
            code: The code to run.
        """
        self._cells.run(code)
        return self._output.take() or "(no output)"
