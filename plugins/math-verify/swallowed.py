"""Exceptions that Math-Verify and SymPy catch silently.

Most of them are part of how they work: an expression without `round` is compared in another way, and a text that is not
LaTeX is compared as a text. But if the interpreter ran out of a resource or lacks a part of itself, or an exception
from below reaches Math-Verify's outermost handler, the `False` that follows is not the result of a comparison.
"""

from __future__ import annotations

import sys
from types import CodeType

PACKAGES = ("math_verify", "latex2sympy2_extended", "antlr4", "sympy", "mpmath")
"""The packages whose code the component has."""

_EXHAUSTED = (RecursionError, MemoryError, OverflowError)
_TOO_LONG = "Exceeds the limit"
"""The beginning of Python's message about an integer with too many digits to write."""
_CATCH_ALL = {
    ("math_verify.parser", "parse"),
    ("math_verify.grader", "compare_single_extraction_wrapper"),
}
_TOOL = sys.monitoring.PROFILER_ID
_HANDLED = sys.monitoring.events.EXCEPTION_HANDLED


class swallowed:
    """Records the exceptions that are caught in its block."""

    def __init__(self) -> None:
        self.seen: BaseException | None = None

    def __enter__(self) -> swallowed:
        sys.monitoring.use_tool_id(_TOOL, "math-verify")
        sys.monitoring.register_callback(_TOOL, _HANDLED, self._handled)
        sys.monitoring.set_events(_TOOL, _HANDLED)
        return self

    def __exit__(self, *_: object) -> None:
        sys.monitoring.set_events(_TOOL, 0)
        sys.monitoring.free_tool_id(_TOOL)

    def trouble(self) -> str | None:
        """Why the comparison ended early, in words."""
        if self.seen is None:
            return None
        return f"{type(self.seen).__name__}: {str(self.seen)[:200]}"

    def _handled(self, code: CodeType, _offset: int, error: BaseException) -> None:
        if self.seen is None and (_exhausted(error) or _lacking(error) or _at_the_top(code, error)):
            self.seen = error


def _exhausted(error: BaseException) -> bool:
    return isinstance(error, _EXHAUSTED) or (isinstance(error, ValueError) and str(error).startswith(_TOO_LONG))


def _lacking(error: BaseException) -> bool:
    """Whether a module is missing that the component should have. SymPy also
    looks for other modules (numpy) and works without them."""
    if not isinstance(error, ImportError):
        return False
    top = (error.name or "").partition(".")[0]
    return top in PACKAGES or top in sys.stdlib_module_names


def _at_the_top(code: CodeType, error: BaseException) -> bool:
    """Whether the exception reached Math-Verify's own catch-all. A ValueError
    of its comparison does not count: it means that there is nothing to compare,
    such as two chains of different lengths, or no number."""
    module = code.co_filename.replace("\\", "/").removesuffix(".py").rpartition("/math_verify/")[2]
    if (f"math_verify.{module}", code.co_name) not in _CATCH_ALL:
        return False
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    own = frame is not None and frame.tb_frame.f_globals.get("__name__") == "math_verify.grader"
    return not (own and isinstance(error, ValueError))
