"""Imports that packages make only when they are called."""

from __future__ import annotations

import ast
import contextlib
import importlib
import sys
from collections.abc import Iterator, Sequence

__all__ = ["import_late", "packages"]


def packages() -> list[str]:
    """The loaded packages, except Python's own library and this package."""
    names = {name.partition(".")[0] for name, module in list(sys.modules.items()) if getattr(module, "__file__", None)}
    own = ("gavel", "componentize_py")
    return sorted(name for name in names - set(sys.stdlib_module_names) if not name.startswith(own))


def import_late(names: Sequence[str]) -> None:
    """Imports at build time the modules that these packages import inside their
    functions, and so on.

    There are no files when a component runs, so such an import would fail. A
    package that catches the error would continue without the module.
    """
    read: set[str] = set()
    tried: set[str] = set()
    while new := [name for name in list(sys.modules) if name not in read and _is_of(name, names)]:
        read.update(new)
        for name in new:
            for late, members in _imports(name):
                if not _is_of(late, names):
                    continue
                _try(late, tried)
                for member in members:
                    if not hasattr(sys.modules.get(late), member):
                        _try(f"{late}.{member}", tried)


def _try(name: str, tried: set[str]) -> None:
    if name in sys.modules or name in tried:
        return
    tried.add(name)
    # A module that cannot be imported here cannot be imported later either.
    with contextlib.suppress(Exception):
        importlib.import_module(name)


def _is_of(name: str, names: Sequence[str]) -> bool:
    return name.partition(".")[0] in names


def _imports(name: str) -> Iterator[tuple[str, list[str]]]:
    """Every module that the source of a module imports, anywhere in it, and the
    names that it takes from each."""
    path = getattr(sys.modules[name], "__file__", None)
    if not path or not path.endswith(".py"):
        return
    with open(path, "rb") as file:
        tree = ast.parse(file.read())
    package = getattr(sys.modules[name], "__package__", None) or name
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, []
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - max(node.level - 1, 0)] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            yield base, [alias.name for alias in node.names]
