"""Writes docs/languages/python-reference.md from the signatures and docstrings of the SDK: `python3 tests/reference.py`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "gavel"
PAGE = Path(__file__).parents[3] / "docs/languages/python-reference.md"

MODULES = ["advantages", "chat", "http", "policy", "programs", "reward_models", "samplers", "testing"]
"""The modules that plugins and their tests import, beside `gavel` itself."""

HEAD = """# Reference of the Python SDK

Everything public in `gavel`, with the first sentence of its docstring. [Plugins in Python](python.md) has examples.
`sdk/python/tests/reference.py` writes this page.
"""

PROPERTIES = {"property", "cached_property"}


def page() -> str:
    """The text of the page."""
    parts = [HEAD, *section("gavel", "__init__")]
    for module in MODULES:
        parts += section(f"gavel.{module}", module)
    return "\n".join(parts)


def section(title: str, module: str) -> Iterator[str]:
    """The public names of a module: functions and other names in a table, and a table for each class."""
    yield f"## `{title}`\n"
    definitions = [definition(module, name) for name in public(module)]
    classes = [made for made, _ in definitions if isinstance(made, ast.ClassDef)]
    rest = [row for made, said in definitions for row in named(made, said)]
    if rest:
        yield table(rest)
    for made in classes:
        bases = ", ".join(ast.unparse(base) for base in made.bases)
        yield f"### `{made.name}`\n"
        yield f"{sentence(ast.get_docstring(made))}{f' Base: `{bases}`.' if bases else ''}\n"
        rows = list(members(made))
        if rows:
            yield table(rows)


def table(rows: list[tuple[str, str]]) -> str:
    lines = [f"| `{code}` | {text} |".replace("|  |", "| |") for code, text in rows]
    return "\n".join(["| | |", "|---|---|", *lines]) + "\n"


def parsed(module: str) -> ast.Module:
    return ast.parse((SOURCES / f"{module}.py").read_text(encoding="utf-8"))


def public(module: str) -> list[str]:
    """The names in `__all__`, without modules."""
    for statement in parsed(module).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(statement.value)
            return [name for name in names if name not in MODULES]
    raise ValueError(f"{module} has no __all__")


def definition(module: str, name: str) -> tuple[ast.stmt, str | None]:
    """The last definition of a name, in the module that it comes from, and the text after it."""
    found: tuple[ast.stmt, str | None] | None = None
    body = parsed(module).body
    for statement, after in zip(body, [*body[1:], None]):
        if isinstance(statement, ast.ImportFrom) and name in [alias.name for alias in statement.names]:
            return definition(str(statement.module), name)
        is_made = isinstance(statement, (ast.ClassDef, ast.FunctionDef)) and statement.name == name
        if is_made or isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name:
            found = statement, docstring(after)
    if found is None:
        raise ValueError(f"{module} does not define {name}")
    return found


def named(made: ast.stmt, said: str | None) -> Iterator[tuple[str, str]]:
    """The row of a function or of an alias."""
    if isinstance(made, ast.FunctionDef):
        yield signature(made, made.name), sentence(ast.get_docstring(made))
    elif isinstance(made, ast.Assign):
        yield code(ast.unparse(made)), sentence(said)


def members(made: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """The rows of a class: its constructor, its fields and properties, its methods."""
    for statement, after in zip(made.body, [*made.body[1:], None]):
        if isinstance(statement, ast.AnnAssign) and not ast.unparse(statement.target).startswith("_"):
            yield code(ast.unparse(statement)), sentence(docstring(after))
        if not isinstance(statement, ast.FunctionDef):
            continue
        decorators = {ast.unparse(decorator) for decorator in statement.decorator_list}
        if statement.name == "__init__":
            yield signature(statement, made.name).removesuffix(" -> None"), sentence(ast.get_docstring(statement))
            yield from attributes(made, statement)
        elif statement.name.startswith("_"):
            continue
        elif decorators & PROPERTIES and statement.returns is not None:
            yield code(f"{statement.name}: {ast.unparse(statement.returns)}"), sentence(ast.get_docstring(statement))
        else:
            owner = f"{made.name}." if "classmethod" in decorators else ""
            yield signature(statement, owner + statement.name), sentence(ast.get_docstring(statement))


def attributes(made: ast.ClassDef, constructor: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """What a constructor sets, apart from the properties of the class."""
    properties = {statement.name for statement in made.body if isinstance(statement, ast.FunctionDef)}
    for statement, after in zip(constructor.body, [*constructor.body[1:], None]):
        if isinstance(statement, ast.Assign):
            name, kind = ast.unparse(statement.targets[0]), ""
        elif isinstance(statement, ast.AnnAssign):
            name, kind = ast.unparse(statement.target), f": {ast.unparse(statement.annotation)}"
        else:
            continue
        name = name.removeprefix("self.")
        if name.isidentifier() and not name.startswith("_") and name not in properties:
            yield code(name + kind), sentence(docstring(after))


def signature(function: ast.FunctionDef, name: str) -> str:
    """`name(arguments) -> result`, without `self` and without types of arguments, which the source has."""
    arguments = function.args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        argument.annotation = None
    for argument in [arguments.vararg, arguments.kwarg]:
        if argument is not None:
            argument.annotation = None
    for of in (arguments.posonlyargs, arguments.args):
        if of and of[0].arg in ("self", "cls"):
            del of[0]
    result = "" if function.returns is None else f" -> {ast.unparse(function.returns)}"
    return code(f"{name}({ast.unparse(arguments)}){result}")


def code(text: str) -> str:
    """Code in a cell of a table."""
    # Python 3.10 writes a space after the word.
    return text.replace("lambda :", "lambda:").replace("|", "\\|")


def docstring(statement: ast.stmt | None) -> str | None:
    """The text of a statement that is only a text."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return str(statement.value.value)
    return None


def sentence(text: str | None) -> str:
    """The first sentence of a docstring, in one line."""
    words = " ".join((text or "").split("\n\n")[0].split())
    first, stop, _ = words.partition(". ")
    return code(first + stop.strip())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
