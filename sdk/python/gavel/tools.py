"""Tools: functions that the policy may call."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from .exports import Export, exported, params_type
from .schemas import Described, describe

__all__ = ["Function", "ToolExport", "final_state", "schema", "tool"]

T = TypeVar("T", bound=Callable[..., Any])


@dataclass(frozen=True)
class Function:
    """A function of a tool."""

    name: str
    described: Described
    call: Callable[..., Any]
    """Takes the state of the trajectory, unless it is a plain function."""
    takes_params: bool = False


@dataclass(frozen=True)
class ToolExport(Export):
    """The component's tool: a class, or plain functions."""

    functions: tuple[Function, ...] = ()
    is_class: bool = False
    final_state: Callable[[Any], Any] | None = None
    """The method that reports the state in which a trajectory ended."""

    def open(self, params: Any, settings: dict[str, Any]) -> Any:
        """The state of a new trajectory; None for plain functions."""
        return self.call(params, settings=settings) if self.is_class else None

    def answer(self, state: Any, params: Any, name: str, arguments: dict[str, Any]) -> str:
        """Calls the function `name`."""
        function = next(function for function in self.functions if function.name == name)
        arguments = function.described.converted(arguments)
        if function.takes_params:
            arguments["params"] = params
        answer = function.call(state, **arguments) if self.is_class else function.call(**arguments)
        return as_text(name, answer)

    def finish(self, state: Any) -> Any:
        """The state in which a trajectory ended, for rewards; None if the tool reports none."""
        return None if self.final_state is None else self.final_state(state)


def as_text(name: str, answer: Any) -> str:
    """What the policy reads: a text as it is, any other value as JSON."""
    if answer is None:
        raise TypeError(f"`{name}` returned None: end it with `return` and what the policy reads")
    if isinstance(answer, str):
        return answer
    if isinstance(answer, float) and not math.isfinite(answer):
        return str(answer)
    return json.dumps(answer, ensure_ascii=False)


def schema(parameters: dict[str, Any]) -> Callable[[T], T]:
    """Sets the JSON Schema of a function's arguments, in place of the one that
    follows from its annotations."""

    def decorate(function: T) -> T:
        function.__gavel_schema__ = parameters  # type: ignore[attr-defined]
        return function

    return decorate


def final_state(method: T) -> T:
    """Makes a method of a tool's class report the state in which a trajectory
    ended. It is called once, after the last call, and returns a value of JSON or
    None. Rewards and judgers read it with `trajectory.state(…)`; the policy
    neither sees nor calls it."""
    method.__gavel_final_state__ = True  # type: ignore[attr-defined]
    return method


@overload
def tool(made: T, /) -> T: ...
@overload
def tool(*, pure: bool = ..., version: str = ...) -> Callable[[T], T]: ...
def tool(made: T | None = None, /, *, pure: bool = False, version: str = "0.1.0") -> T | Callable[[T], T]:
    """Makes a class or a function the component's tool.

    An instance of a class is the state of one trajectory, and its methods are
    the functions, except those whose names begin with `_`. Its `__init__` takes
    any of `settings`, a dict of what the dataset's row sets for the tool, and
    `params`. A tool without state is one or more plain functions, each with
    `@tool`; the policy does not set their argument `params`.

    The schema of the arguments follows from the annotations: str, int, float,
    bool, list, dict, Literal, optional ones, and Annotated with a description
    or a dict of further keywords. The description is the docstring, whose
    section `Args:` describes the arguments. `@schema` sets another schema.

    A function returns what the policy reads: a text, or any value of JSON.
    Raise `InvalidInput` if the policy called it wrongly.

    - `pure`: no call depends on an earlier one, so that nothing is kept.
    - `version`: the version of the tool.
    """

    def decorate(made: T) -> T:
        if inspect.isclass(made):
            _export_class(made, pure, version)
        else:
            _export_function(made, pure, version)
        return made

    return decorate if made is None else decorate(made)


def _export_class(made: Any, pure: bool, version: str) -> None:
    if "tool" in exported and exported["tool"].function.__module__ == made.__module__:
        raise TypeError(f"`{exported['tool'].function.__name__}` and `{made.__name__}` are both a tool: a component has one")
    takes = () if made.__init__ is object.__init__ else tuple(inspect.signature(made).parameters)
    for name in takes:
        if name not in ("settings", "params"):
            raise TypeError(f"`{made.__name__}` takes `{name}`: a tool takes any of `settings`, `params`")
    params = params_type(made.__init__, made.__name__) if "params" in takes else None
    methods = [(name, method) for name, method in vars(made).items() if not name.startswith("_") and inspect.isfunction(method)]
    final = [method for _, method in methods if hasattr(method, "__gavel_final_state__")]
    if len(final) > 1:
        raise TypeError(f"`{final[0].__name__}` and `{final[1].__name__}` both have @final_state: a tool has one")
    methods = [(name, method) for name, method in methods if method not in final]
    if not methods:
        raise TypeError(f"`{made.__name__}` has no function: write a method for each")
    functions = tuple(Function(name, _described(method, ("self",)), method) for name, method in methods)
    ended = final[0] if final else None
    exported["tool"] = ToolExport(
        made, takes, params, version, pure, None, functions=functions, is_class=True, final_state=ended
    )


def _export_function(made: Any, pure: bool, version: str) -> None:
    before = exported.get("tool")
    if not isinstance(before, ToolExport) or before.function.__module__ != made.__module__:
        before = ToolExport(made, (), None, version, pure, None)
    if before.is_class:
        raise TypeError(f"`{before.function.__name__}` is the tool: make `{made.__name__}` one of its methods")
    if any(function.name == made.__name__ for function in before.functions):
        raise TypeError(f"there are two functions `{made.__name__}`")
    takes_params = "params" in inspect.signature(made).parameters
    params = params_type(made, made.__name__) if takes_params else before.params
    if before.params not in (None, params):
        raise TypeError(f"`params` of `{made.__name__}` is another type than in the other functions of the tool")
    function = Function(made.__name__, _described(made, ("params",)), made, takes_params)
    functions = (*before.functions, function)
    exported["tool"] = ToolExport(
        before.function, (), params, before.version, before.pure and pure, None, functions=functions
    )


def _described(function: Any, without: tuple[str, ...]) -> Described:
    if inspect.iscoroutinefunction(function):
        raise TypeError(f"`{function.__name__}` is async: a tool's function is a plain one")
    return describe(function, without, getattr(function, "__gavel_schema__", None))
