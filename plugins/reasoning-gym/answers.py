"""Makes the package's scorers read answers without running them.

Some scorers `eval` the answer, with the answer key among the names that it can
use. SymPy's `parse_expr` does the same with texts that it cannot read. Here an
answer is a value or a formula, and nothing in it is run.
"""

from __future__ import annotations

import ast
from typing import Any

import sympy
from reasoning_gym.algorithmic import binary_matrix, spiral_matrix, string_insertion
from reasoning_gym.games import n_queens
from sympy.parsing import sympy_parser

_PARTS = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.Constant, ast.Name, ast.Tuple, ast.List,
    ast.operator, ast.unaryop, ast.cmpop, ast.expr_context,
)  # fmt: skip

# SymPy's classes of numbers and unknowns, its constants, and functions of mathematics; nothing that
# would leave the work to the grader, such as `integrate`. `Integral` stays one, and some rows of
# `intermediate_integration` have it as their answer.
_NAMES = {"Integer", "Float", "Rational", "Symbol", "Function", "Integral", "pi", "E", "I", "oo", "zoo", "nan"}
_NAMES |= set(sympy.functions.__all__)


def _evaluate(code: str, local_dict: dict[str, Any], global_dict: dict[str, Any]) -> Any:
    """Replaces SymPy's `eval_expr`: `code` is the Python code that makes the
    formula. A text in it comes back here through `sympify`."""
    tree = ast.parse(code.strip(), mode="eval")
    for part in ast.walk(tree):
        if not isinstance(part, _PARTS):
            raise ValueError(f"no part of a formula: {type(part).__name__}")
        if isinstance(part, ast.Name) and part.id not in _NAMES and part.id not in local_dict:
            raise ValueError(f"no name in a formula: {part.id}")
    return eval(compile(tree, "<answer>", "eval"), global_dict, local_dict)


def guard() -> None:
    """Makes the scorers read answers as values and formulas."""
    for module in (binary_matrix, n_queens, spiral_matrix, string_insertion):
        module.eval = ast.literal_eval
    sympy_parser.eval_expr = _evaluate
