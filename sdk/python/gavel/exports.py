"""Makes functions the exports of a component."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints, overload

__all__ = ["Export", "advantage", "agent", "exported", "judger", "reward", "sampler", "taskset"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Export:
    """A function that the component exports, and its promises."""

    function: Callable[..., Any]
    takes: tuple[str, ...]
    """The names of its arguments."""
    params: Any
    """The type of its argument `params`; `None` if it has no such argument."""
    version: str
    pure: bool
    score_range: tuple[float, float] | None
    length: int | Callable[[Any], int | None] | None = None
    """For a taskset: the number of its rows, or a function of `params` that gives it."""
    check_params: Callable[[dict[str, Any]], None] | None = None
    """Further checks of the parameters, beyond their type; raises ParameterError."""

    def call(self, params: Any, **arguments: Any) -> Any:
        """Calls the function with the arguments that it takes."""
        given = {**arguments, "params": params}
        return self.function(*(given[name] for name in self.takes))


exported: dict[str, Export] = {}
"""The exports of the plugin, by the name of the interface."""


@overload
def reward(function: F, /) -> F: ...
@overload
def reward(
    *, pure: bool = ..., score_range: tuple[float, float] | None = ..., version: str = ...
) -> Callable[[F], F]: ...
def reward(
    function: F | None = None,
    /,
    *,
    pure: bool = False,
    score_range: tuple[float, float] | None = None,
    version: str = "0.1.0",
) -> F | Callable[[F], F]:
    """Makes a function the component's reward.

    The function takes any of `sample`, `reference` and `params`, by these
    names, and returns a number, a dict with `score`, a `Score` or
    `abstain("why")`. The type of `params` is its annotation: a dataclass, whose
    fields are checked before the run starts, or a dict.

    - `pure`: the same input gives the same verdict, and no call depends on an
      earlier one, so that the host may reuse an instance.
    - `score_range`: the lowest and the highest score; a score outside is a fault.
    - `version`: the version of the rule, recorded with every outcome.
    """
    return _decorator("reward", ("sample", "reference", "params"), function, pure, score_range, version)


@overload
def judger(function: F, /) -> F: ...
@overload
def judger(
    *, pure: bool = ..., score_range: tuple[float, float] | None = ..., version: str = ...
) -> Callable[[F], F]: ...
def judger(
    function: F | None = None,
    /,
    *,
    pure: bool = False,
    score_range: tuple[float, float] | None = None,
    version: str = "0.1.0",
) -> F | Callable[[F], F]:
    """Makes a function the component's judger: it sees all samples of a group,
    which are attempts at one task.

    The function takes any of `samples`, `reference` and `params`, and returns a
    list with one verdict for each sample, in order. The rest is as in `reward`.
    """
    return _decorator("judger", ("samples", "reference", "params"), function, pure, score_range, version)


@overload
def taskset(function: F, /) -> F: ...
@overload
def taskset(*, length: int | Callable[..., int | None] | None = ..., version: str = ...) -> Callable[[F], F]: ...
def taskset(
    function: F | None = None,
    /,
    *,
    length: int | Callable[..., int | None] | None = None,
    version: str = "0.1.0",
) -> F | Callable[[F], F]:
    """Makes a function the component's dataset.

    The function takes any of `index`, `seed` and `params`, and returns the row
    at that index as a dict: `prompt` and any other column of a dataset's file.
    The same index and seed must give the same row. `length` is the number of
    rows, or a function of `params` (or without arguments) that gives it.
    Without it, the rows never end.
    """
    return _decorator("taskset", ("index", "seed", "params"), function, False, None, version, _of_params(length))


@overload
def agent(function: F, /) -> F: ...
@overload
def agent(*, pure: bool = ..., version: str = ...) -> Callable[[F], F]: ...
def agent(
    function: F | None = None,
    /,
    *,
    pure: bool = False,
    version: str = "0.1.0",
) -> F | Callable[[F], F]:
    """Makes a function the component's agent, which attempts a task over
    conversations with the policy (`gavel.policy`).

    The function takes any of `task` and `params`, and returns the response that
    rewards read, or an `Answer` with an object beside it.
    """
    return _decorator("agent", ("task", "params"), function, pure, None, version)


@overload
def advantage(function: F, /) -> F: ...
@overload
def advantage(*, pure: bool = ..., version: str = ...) -> Callable[[F], F]: ...
def advantage(
    function: F | None = None,
    /,
    *,
    pure: bool = False,
    version: str = "0.1.0",
) -> F | Callable[[F], F]:
    """Makes a function the component's advantage, which turns the rewards of
    the groups that the policy learns from at once into advantages.

    The function takes any of `groups` (of `gavel.advantages.Group`), `step`
    (from 1), `state` and `params`. For each group it returns a list with the
    advantage of each sample: a number, one for each trajectory, or a list of
    one for each token of each trajectory. With `Estimates` it also returns the
    `state`, bytes that the next call gets.
    """
    return _decorator("advantage", ("groups", "step", "state", "params"), function, pure, None, version)


@overload
def sampler(function: F, /) -> F: ...
@overload
def sampler(*, pure: bool = ..., version: str = ...) -> Callable[[F], F]: ...
def sampler(
    function: F | None = None,
    /,
    *,
    pure: bool = False,
    version: str = "0.1.0",
) -> F | Callable[[F], F]:
    """Makes a function the component's sampler, which draws the tasks of a run.

    The function takes any of `request` (`gavel.samplers.Request`) and `params`.
    It returns a list of as many tasks as the request wants: rows counted over
    all datasets, or tuples of a dataset and its row. With `Draws` it also
    refuses groups, and returns the `state`, bytes that the next call gets.
    """
    return _decorator("sampler", ("request", "params"), function, pure, None, version)


def _of_params(length: int | Callable[..., int | None] | None) -> int | Callable[[Any], int | None] | None:
    if callable(length) and not inspect.signature(length).parameters:
        return lambda _: length()
    return length


def _decorator(
    interface: str,
    names: Sequence[str],
    function: F | None,
    pure: bool,
    score_range: tuple[float, float] | None,
    version: str,
    length: int | Callable[[Any], int | None] | None = None,
) -> F | Callable[[F], F]:
    def decorate(function: F) -> F:
        if inspect.iscoroutinefunction(function):
            raise TypeError(f"`{function.__name__}` is async: {with_article(interface)} is a plain function")
        takes = tuple(inspect.signature(function).parameters)
        for name in takes:
            if name not in names:
                expected = ", ".join(f"`{name}`" for name in names)
                raise TypeError(f"`{function.__name__}` takes `{name}`: {with_article(interface)} takes any of {expected}")
        params = params_type(function, function.__name__) if "params" in takes else None
        export(interface, Export(function, takes, params, version, pure, score_range, length))
        return function

    return decorate if function is None else decorate(function)


def with_article(interface: str) -> str:
    """The interface with its article."""
    return f"an {interface}" if interface[0] == "a" else f"a {interface}"


def export(interface: str, made: Export) -> None:
    """Makes `made` the component's export `interface`."""
    if interface in exported and exported[interface].function.__module__ == made.function.__module__:
        first = exported[interface].function.__name__
        raise TypeError(f"`{first}` and `{made.function.__name__}` are both {with_article(interface)}: a component has one")
    exported[interface] = made


def params_type(function: Callable[..., Any], name: str) -> Any:
    """The type of a function's argument `params`; errors show the function's name."""
    kind = get_type_hints(function).get("params", dict)
    origin = getattr(kind, "__origin__", kind)
    if not (dataclasses.is_dataclass(kind) or (isinstance(origin, type) and issubclass(origin, dict))):
        raise TypeError(f"`params` of `{name}` must be a dataclass or a dict, not {kind!r}")
    return kind
