"""Ground truths as Math-Verify reads them."""

import re

_MARKED = re.compile(r"(?<!\\)(?:\$|\\boxed\b|\\\(|\\\[)")


def as_latex(truth: str) -> str:
    r"""A ground truth that is not marked as LaTeX in a `\boxed{…}`, as verl does
    it: Math-Verify reads LaTeX only where it is marked."""
    return truth if _MARKED.search(truth) or not truth.strip() else f"\\boxed{{{truth}}}"
