"""Scores 1 where Math-Verify finds the answer equal to the ground truth."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from gavel import InvalidInput, Reference, Sample, Score, Verdict, abstain, reward
from math_verify import parse, verify

from latex import as_latex
from swallowed import swallowed

# It warns that its own time limit is off. Here the limits of the run end a call.
logging.getLogger("math_verify").setLevel(logging.ERROR)

NOTE_LENGTH = 200


@dataclass
class Params:
    """The parameters that a run may set: those of `math_verify.verify`."""

    float_rounding: int = 6
    """Decimal places to which decimals are compared."""
    numeric_precision: int = 15
    """Digits to which other expressions are evaluated."""
    strict: bool = True
    """Whether variables must have the same names, and a set differs from a tuple."""
    allow_set_relation_comp: bool = False
    """Whether `1 < x < 2` answers `(1, 2)`."""


@reward(score_range=(0, 1), version="0.9.0")
def score(sample: Sample, reference: Reference, params: Params) -> Verdict:
    truth = reference.require_ground_truth()
    gold, trouble = read(as_latex(truth))
    if not gold or trouble:
        raise InvalidInput(f"the ground truth `{truth:.{NOTE_LENGTH}}` cannot be read: {trouble or 'it is blank'}")
    answer, unread = read(sample.response)
    with swallowed() as in_comparison:
        equal = verify(
            gold,
            answer,
            params.float_rounding,
            params.numeric_precision,
            params.strict,
            params.allow_set_relation_comp,
            timeout_seconds=None,
        )
    if trouble := unread or in_comparison.trouble():
        if not equal:
            return abstain(f"Math-Verify gave up: {trouble}")
    # The text found comes last; writing an expression may take forever.
    note = f"the answer is {answer[-1]:.{NOTE_LENGTH}}" if answer and isinstance(answer[-1], str) else "no answer"
    return Score(equal, {"answered": bool(answer)}, note)


def read(text: str) -> tuple[list, str | None]:
    """The expressions that Math-Verify finds, and the problem that stopped it."""
    with swallowed() as in_parsing:
        found = parse(text, parsing_timeout=None)
    return found, in_parsing.trouble()


def warm_up() -> None:
    """Fills the parser's tables, the regular expressions and SymPy's caches
    when the component is built, so that each call begins with them."""
    for gold, answer in [
        ("\\frac{1}{2}", "so $x = 0.5$. The final answer is $\\boxed{0.5}$"),
        ("x^2+2x+1", "\\boxed{(x+1)^2}"),
        ("\\{1,2,3\\}", "\\[\\{3, 1, 2\\}\\]"),
        ("(1,2)", "Answer: 7/2 and $(1, 2]$"),
        ("x=5", "$2x = 10$"),
        ("\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\boxed{\\begin{pmatrix}1&2\\\\3&5\\end{pmatrix}}"),
        ("1 < x < 3", "$x \\in (1, \\sqrt{8}+\\sin(\\pi/6))$"),
        ("12\\%", "It is 12 percent, or \\boxed{90^\\circ}"),
        ("3+4i", "$\\boxed{\\log_2 8 + 2^{2} i}$"),
    ]:
        verify(parse(as_latex(gold), parsing_timeout=None), parse(answer, parsing_timeout=None), timeout_seconds=None)


warm_up()
