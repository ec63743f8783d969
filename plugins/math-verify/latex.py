"""Ground truths as Math-Verify reads them."""

import re

_MARKED = re.compile(r"(?<!\\)(?:\$|\\boxed\b|\\\(|\\\[)")


def as_latex(truth: str) -> str:
    r"""Puts a ground truth that is not marked as LaTeX into a `\boxed{…}`, as
    verl does: Math-Verify reads only marked LaTeX."""
    return truth if _MARKED.search(truth) or not truth.strip() else f"\\boxed{{{truth}}}"
