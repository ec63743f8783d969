"""Runs pieces of code one after the other, as a notebook runs its cells."""

from __future__ import annotations

import ast
import linecache
import sys
import traceback
import types

from output import Output


class Cells:
    """The cells of a session. They share the module `__main__`."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._module = types.ModuleType("__main__")
        self._count = 0
        sys.modules["__main__"] = self._module
        sys.argv = [""]

    def run(self, code: str) -> None:
        """Runs a cell. Its output, the value of its last expression and its traceback are written to the output."""
        # The cell before may have replaced them.
        sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = self._output
        self._count += 1
        name = f"<cell {self._count}>"
        # A traceback shows lines of the code, which has no file.
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        try:
            value = self._value(ast.parse(code, name), name)
            text = None if value is None else repr(value)
        except BaseException as error:
            text = explain(error)
        if text is not None:
            self._write_line(text)

    def _value(self, tree: ast.Module, name: str) -> object:
        """Runs the code and returns the value of its last expression; it is `_` for later cells."""
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        variables = self._module.__dict__
        exec(compile(tree, name, "exec"), variables)
        if last is None:
            return None
        value = eval(compile(ast.Expression(last.value), name, "eval"), variables)
        if value is not None:
            variables["_"] = value
        return value

    def _write_line(self, text: str) -> None:
        self._output.write(text if self._output.ends_line() else "\n" + text)


def explain(error: BaseException) -> str:
    """The traceback of an error, without the lines of this tool and of Python's library, whose files are not here."""
    if isinstance(error, SystemExit):
        return f"SystemExit: {error.code}\nThe session continues. It ends with the conversation."
    explained = traceback.TracebackException.from_exception(error)
    seen = set()
    left = [explained]
    while left:
        each = left.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        each.stack = traceback.StackSummary.from_list(
            frame for frame in each.stack if frame.filename.startswith("<cell ")
        )
        left += [each.__cause__, each.__context__, *(each.exceptions or ())]
    return "".join(explained.format()).rstrip("\n")
