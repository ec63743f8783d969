"""The families of reasoning-gym that a component can have.

The package imports every family when it is imported itself. So a family that
needs compiled code would keep all the others from loading, and is left out
here. The files of the families are read now: a component has none when it runs.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import io
import re
import sys
from collections.abc import Sequence
from functools import cache
from importlib import resources
from types import ModuleType
from typing import Any

absent = {"codeio": "it runs programs, and a quarter of them import numpy"}
"""The families that are left out, and why."""


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        # A family's module is `reasoning_gym.CATEGORY.MODULE`.
        if not re.fullmatch(r"reasoning_gym\.\w+\.\w+", name):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def exec_module(self, module: ModuleType) -> None:
        try:
            self.loader.exec_module(module)
        except ModuleNotFoundError as error:
            for family in re.findall(r'^DATASET_NAME = "(\w+)"', self.loader.get_source(module.__name__), re.M):
                absent.setdefault(family, f"it needs {error.name}, which no component can have: it is compiled, or needs what is")
            module.__getattr__ = _stand_in  # type: ignore[method-assign]


def _stand_in(name: str) -> type:
    """Stands in for a name that the package imports from a family that is left out."""
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (), {})


sys.meta_path.insert(0, _Finder())
import pyfiglet  # noqa: E402
import reasoning_gym  # noqa: E402
from reasoning_gym.cognition.figlet_fonts import OK_FONTS  # noqa: E402
from reasoning_gym.dataset import ProceduralDataset  # noqa: E402
from reasoning_gym.factory import DATASETS  # noqa: E402


class _Text(str):
    """The text of a file, in place of its path."""

    def open(self, *_: Any, **__: Any) -> io.StringIO:
        return io.StringIO(self)

    def read_text(self, *_: Any, **__: Any) -> str:
        return self


class _Data:
    """The package's data, in place of `importlib.resources`."""

    def __init__(self) -> None:
        folder = resources.files("reasoning_gym.data")
        kept = (file for file in folder.iterdir() if file.name.endswith((".csv", ".json", ".jsonl", ".txt")))
        self.texts = {file.name: _Text(file.read_text(encoding="utf-8")) for file in kept}

    def files(self, _: str) -> _Data:
        return self

    def joinpath(self, name: str) -> _Text:
        if name not in self.texts:
            raise ValueError(f"reasoning-gym has no data `{name}`; it has {', '.join(sorted(self.texts))}")
        return self.texts[name]


reasoning_gym.data.resources = _Data()
_fonts = {font: pyfiglet.FigletFont.preloadFont(font) for font in OK_FONTS}
pyfiglet.FigletFont.preloadFont = _fonts.__getitem__


def dataset(family: str, config: dict[str, Any], seed: int = 0, size: int = 1) -> ProceduralDataset:
    """The rows of a family, as `reasoning_gym.create_dataset` gives them.

    Raises ValueError if there is no such family, or if it does not take that
    configuration.
    """
    if family in absent:
        raise ValueError(f"the family `{family}` is not in this plugin: {absent[family]}")
    if family not in DATASETS:
        raise ValueError(f"there is no family `{family}`; there are {', '.join(sorted(DATASETS))}")
    try:
        return reasoning_gym.create_dataset(family, **{**config, "seed": seed, "size": size})
    except (AssertionError, TypeError, ValueError) as error:
        raise ValueError(f"the family `{family}`: {error}") from None


@cache
def usual(family: str) -> ProceduralDataset:
    """The family with its default configuration."""
    return dataset(family, {})


def warm_up() -> None:
    """Makes and scores a row of every family when the component is built, so
    that everything that they read and import is available when it runs."""
    for family in DATASETS:
        rows = usual(family)
        entry = rows[0]
        rows.score_answer(entry["answer"], entry)
