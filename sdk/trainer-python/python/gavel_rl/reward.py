"""A reward as a scorer uses it."""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# In the package gavel-rl-plugins.
_LARGE = ("javascript", "math-verify", "python", "reasoning-gym")


@dataclass(frozen=True)
class Reward:
    """A component, and how a :class:`Scorer` uses it. Its fields are the keys of ``[[reward]]`` of a configuration.

    Args:
        path: The component: a ``.wasm`` file, the folder of a built plugin, or the name of a standard reward, such as
            ``exact-answer``.
        weight: The factor of its score in the reward. With 0, the score is only recorded.
        name: Its name in outcomes; by default the name of the file.
        params: The parameters of the component's initialisation.
        limits: The limits of its calls, where they differ from the scorer's: ``{"timeout": "30s", "memory": "1GiB"}``.
        grant: What it may reach beyond its row, where it differs from the scorer's: ``{"chat": ["judge"]}``.
        only_if: A condition on another reward's score, such as ``"format > 0"``. Where it does not hold, this reward
            is not called and adds 0.
        data_sources: The data sources of the rows that it scores; all by default. ``*`` stands for any characters.
        after: The rewards whose verdicts a judger sees.
        reuse: How many calls an instance answers. Only for a component that declares itself pure.
    """

    path: str | os.PathLike[str]
    weight: float = 1.0
    name: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    grant: Mapping[str, Any] | None = None
    only_if: str | None = None
    data_sources: Sequence[str] = ()
    after: Sequence[str] = ()
    reuse: int | None = None

    def _table(self, grants: Mapping[str, Any]) -> dict[str, Any]:
        """The reward as the extension module reads it, with these grants if it has none of its own."""
        if callable(self.path):
            raise TypeError(explain_function(self.path))
        path = component(os.fspath(self.path))
        for name in ("data_sources", "after"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"`{name}` of the reward {path} is a str, not a list of str")
        return {
            "path": path,
            "weight": self.weight,
            "name": self.name,
            "params": dict(self.params),
            "limits": dict(self.limits),
            "grant": dict(grants if self.grant is None else self.grant),
            "only_if": self.only_if,
            "data_sources": list(self.data_sources),
            "after": list(self.after),
            "reuse": self.reuse,
        }


def component(path: str, is_there: Callable[[str], bool] = os.path.exists) -> str:
    """The absolute path of a component, which stays right in a process with another folder. A name of a standard one is
    a path where ``is_there`` finds such a file or plugin's folder."""
    if path.endswith(".py"):
        raise ValueError(
            f"the reward {path} is source code, not a component\n"
            f"hint: build the component once: gavel_rl.build({path!r}) returns its path"
        )
    if os.sep in path or path.endswith(".wasm") or is_there(path):
        return os.path.abspath(path)
    standard = _standard()
    if path in standard:
        return str(standard[path])
    if path in _LARGE:
        raise ValueError(
            f"`{path}` is in the package gavel-rl-plugins, which is not installed\n"
            "hint: pip install gavel-rl-plugins"
        )
    meant = difflib.get_close_matches(path, [*standard, *_LARGE], n=1)
    every = f"name a component (NAME.wasm), a plugin's folder, or one of: {', '.join(sorted(standard))}"
    hint = f"did you mean `{meant[0]}`?" if meant else every
    raise ValueError(f"there is no standard reward `{path}`, and no folder of this name\nhint: {hint}")


def _standard() -> dict[str, Path]:
    """The components that this package and gavel-rl-plugins bring, by name."""
    large = importlib.util.find_spec("gavel_rl_plugins")
    places = [str(Path(__file__).parent / "plugins"), *(large.submodule_search_locations or () if large else ())]
    return {found.stem: found for place in places for found in Path(place).glob("*.wasm")}


def explain_function(function: Callable[..., Any]) -> str:
    """What is wrong with a function in place of a component."""
    name = getattr(function, "__name__", "score")
    file = inspect.getsourcefile(function) if inspect.isfunction(function) else None
    place = f"{file or 'my_reward.py'}:{name}"
    return (
        f"a reward is a component, and `{name}` is a function of Python\n"
        f"hint: build a component of it: gavel_rl.build({place!r}) returns its path"
    )
