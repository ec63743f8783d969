"""The exports of a tool, which the host calls. `gavel plugin build` makes this
module a part of the component; it can be imported only there."""

from __future__ import annotations

import json
import sys
from typing import Any

from gavel_world.exports import tool as contract

from . import component
from .contract import types
from .exports import exported
from .tools import ToolExport

_MODULE = "tool"


def stand_in() -> None:
    """Makes this module the one in which componentize-py looks for the class of
    the resource, by the name of its interface. A module `tool` of the plugin has
    been imported by then, or will be by `init`."""
    sys.modules[_MODULE] = sys.modules[__name__]


def stand_aside() -> None:
    """Lets the plugin have a module of that name."""
    if sys.modules.get(_MODULE) is sys.modules[__name__]:
        del sys.modules[_MODULE]


def _tool() -> ToolExport:
    export = exported["tool"]
    assert isinstance(export, ToolExport)
    return export


class Tool:
    def specs(self) -> list[Any]:
        described = ((function.name, function.described) for function in _tool().functions)
        return [types.ToolSpec(name, about.description, json.dumps(about.parameters)) for name, about in described]


class Session(contract.Session):
    """The state of one trajectory."""

    def __init__(self, state: Any) -> None:
        self._state = state

    @classmethod
    def open(cls, settings: str) -> Session:
        return component.guarded(lambda: cls(_tool().open(component.params_of("tool"), json.loads(settings))))

    def call(self, name: str, arguments: str) -> str:
        params = component.params_of("tool")
        return component.guarded(lambda: _tool().answer(self._state, params, name, json.loads(arguments)))

    def finish(self) -> str | None:
        def finish() -> str | None:
            state = _tool().finish(self._state)
            return None if state is None else component.as_json("state", state)

        return component.guarded(finish)
