"""Golden cases as tests of pytest.

With this package installed, pytest collects each ``plugin.toml`` of a plugin: every case is a test. For a component
without its sources, give a test its cases::

    import pytest
    from gavel_rl.testing import GoldenCase, golden_cases

    @pytest.mark.parametrize("case", golden_cases("exact-answer", "cases.jsonl"), ids=str)
    def test_answers(case: GoldenCase) -> None:
        case.check()
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gavel_rl import _native
from gavel_rl._native import GavelError
from gavel_rl.reward import component


class CaseFailed(AssertionError):
    """A plugin's answer is not what a golden case expects."""


class GoldenCase:
    """A golden case of a plugin. Its ``str`` is its name."""

    def __init__(self, cases: _native.GoldenCases, index: int, name: str, line: int) -> None:
        self._cases = cases
        self._index = index
        self.name = name
        #: Its line in the file.
        self.line = line

    @property
    def path(self) -> Path:
        """The file."""
        return self._cases.path

    def check(self) -> None:
        """Runs the case in the sandbox that training uses. The folder of a plugin is built first, if it has changed.

        Raises:
            CaseFailed: The answer is not the expected one. The message shows both, and all that is known of the call.
            GavelError: The plugin does not build or load.
        """
        __tracebackhide__ = True
        failure = self._cases.run(self._index)
        if failure is not None:
            raise CaseFailed(failure.rstrip())

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"GoldenCase({self.name!r}, {str(self.path)!r}, line {self.line})"


def golden_cases(
    plugin: str | os.PathLike[str],
    cases: str | os.PathLike[str] | None = None,
    *,
    params: Mapping[str, Any] | None = None,
) -> list[GoldenCase]:
    """Reads the golden cases of a plugin, as ``gavel plugin test`` does. Nothing is built or called yet.

    Args:
        plugin: The folder of a plugin, a component, or the name of a standard reward.
        cases: The file of cases; by default the one that a plugin's ``plugin.toml`` names, else its ``cases.jsonl``.
        params: The parameters of cases without their own; by default those of ``plugin.toml``.

    Raises:
        GavelError: A file cannot be read. The message names the line of a broken case.
        ValueError: No standard reward has this name.
    """
    given = None if params is None else json.dumps(dict(params), allow_nan=False)
    file = None if cases is None else os.fspath(cases)
    read = _native.GoldenCases(component(os.fspath(plugin)), file, given, sys.prefix)
    names = read.names()
    times = Counter(name for name, _ in names)
    return [
        GoldenCase(read, index, name if times[name] == 1 else f"{name} (line {line})", line)
        for index, (name, line) in enumerate(names)
    ]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collects the golden cases of a plugin's folder."""
    if file_path.name == "plugin.toml" and _is_plugin(file_path):
        collector: pytest.Collector = PluginFile.from_parent(parent, path=file_path)
        return collector
    return None


def _is_plugin(manifest: Path) -> bool:
    """Whether it is a plugin of Gavel: other programs have files of this name, with a table of this name too."""
    lines = manifest.read_text(encoding="utf-8", errors="replace").splitlines()
    keys = {line.partition("=")[0].strip() for line in lines if "=" in line}
    return "[plugin]" in lines and {"language", "exports"} <= keys


class PluginFile(pytest.File):
    """The golden cases of a plugin's folder."""

    def collect(self) -> Iterator[CaseItem]:
        try:
            cases = golden_cases(self.path.parent)
        except GavelError as error:
            raise self.CollectError(str(error)) from None
        for case in cases:
            yield CaseItem.from_parent(self, name=case.name, case=case)


class CaseItem(pytest.Item):
    """A golden case."""

    def __init__(self, *, case: GoldenCase, **rest: Any) -> None:
        super().__init__(**rest)
        self._case = case

    def runtest(self) -> None:
        self._case.check()

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, (CaseFailed, GavelError)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self._case.path, self._case.line - 1, self.name
