"""The JSON Schema of a function's arguments, from its annotations and its docstring."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

__all__ = ["Described", "describe"]

_KINDS = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}


@dataclass(frozen=True)
class Described:
    """The description of a function for the policy."""

    description: str
    parameters: dict[str, Any]
    integers: frozenset[str] = frozenset()
    """The arguments that are annotated as int."""

    def converted(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments with whole numbers as int: to JSON Schema, 2.0 is an integer."""
        whole = {name: int(value) for name, value in arguments.items() if name in self.integers and isinstance(value, float)}
        return {**arguments, **whole}


def describe(function: Callable[..., Any], without: tuple[str, ...], parameters: dict[str, Any] | None) -> Described:
    """Describes a function without the arguments of these names. `parameters`
    replaces the schema, if it is set.

    Raises TypeError if an annotation has no schema.
    """
    description, about = _docstring(inspect.getdoc(function) or "")
    name = function.__name__
    if not description:
        raise TypeError(f"`{name}` has no docstring: the policy reads it to know what the function does")
    if parameters is not None:
        return Described(description, parameters)
    hints = get_type_hints(function, include_extras=True)
    properties: dict[str, Any] = {}
    required = []
    for argument in inspect.signature(function).parameters.values():
        if argument.name in without:
            continue
        if argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD, argument.POSITIONAL_ONLY):
            raise TypeError(f"`{name}` takes `{argument}`: an argument has a name. Set the schema with @schema(…)")
        if argument.name not in hints:
            raise TypeError(f"`{argument.name}` of `{name}` has no annotation: write its type, or set the schema with @schema(…)")
        schema = _schema(hints[argument.name], f"`{argument.name}` of `{name}`")
        if argument.name in about:
            schema.setdefault("description", about[argument.name])
        if argument.default is argument.empty:
            required.append(argument.name)
        elif argument.default is not None:
            schema["default"] = argument.default
        properties[argument.name] = schema
    unknown = next((argument for argument in about if argument not in properties), None)
    if unknown is not None:
        raise TypeError(f"the docstring of `{name}` describes `{unknown}`, which is not an argument")
    parameters = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    integers = frozenset(argument for argument in properties if _bare(hints[argument]) is int)
    return Described(description, parameters, integers)


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description, and those of the arguments in its section `Args:`."""
    lines = text.splitlines()
    at = next((number for number, line in enumerate(lines) if line.strip() == "Args:"), len(lines))
    about: dict[str, str] = {}
    last = None
    for line in lines[at + 1 :]:
        indent = len(line) - len(line.lstrip())
        if line.strip() and indent == 0:
            break
        name, colon, said = line.strip().partition(":")
        if colon and indent <= 4 and name.isidentifier():
            about[name], last = said.strip(), name
        elif last is not None and line.strip():
            about[last] += f" {line.strip()}"
    return "\n".join(lines[:at]).strip(), about


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _schema(hint: Any, place: str) -> dict[str, Any]:
    origin, options = get_origin(hint), get_args(hint)
    if hint is Any:
        return {}
    if origin is Annotated:
        schema = _schema(options[0], place)
        for more in options[1:]:
            schema.update({"description": more} if isinstance(more, str) else more if isinstance(more, dict) else {})
        return schema
    if origin is Literal:
        kinds = {type(option) for option in options}
        one = {"type": _KINDS[kinds.pop()]} if len(kinds) == 1 and kinds <= _KINDS.keys() else {}
        return {**one, "enum": list(options)}
    if origin in (Union, types.UnionType):
        schemas = [{"type": "null"} if option is type(None) else _schema(option, place) for option in options]
        return {"anyOf": schemas}
    if hint in _KINDS:
        return {"type": _KINDS[hint]}
    if origin is list:
        return {"type": "array", "items": _schema(options[0], place)}
    if origin is dict and options[0] is str:
        return {"type": "object", "additionalProperties": _schema(options[1], place)}
    raise TypeError(f"{place} is annotated as {hint!r}, which has no schema: set one with @schema(…)")
