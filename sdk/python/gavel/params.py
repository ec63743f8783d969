"""Parameters of the run's configuration, read into the type that the function takes."""

from __future__ import annotations

import dataclasses
import enum
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

__all__ = ["ParameterError", "read"]


class ParameterError(ValueError):
    """The plugin does not take this parameter; the text is for the user."""


def read(kind: Any, values: Mapping[str, Any]) -> Any:
    """The parameters as `kind`. For a dataclass, fields are checked and unknown
    keys are refused. A dict takes any key.

    Raises ParameterError, naming the parameter.
    """
    if dataclasses.is_dataclass(kind):
        return _dataclass("", kind, values)
    return dict(values)


def refuse(values: Mapping[str, Any]) -> None:
    """The parameters of a plugin without parameters.

    Raises ParameterError if there is a parameter.
    """
    for name in values:
        raise ParameterError(f"unknown parameter `{name}`: this plugin takes none")


def _dataclass(path: str, kind: Any, values: Any) -> Any:
    if not isinstance(values, Mapping):
        raise _wrong(path, "a table", values)
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}
    for name in values:
        if name not in fields:
            known = ", ".join(f"`{field}`" for field in fields) or "none"
            raise ParameterError(f"unknown parameter `{path}{name}`, expected one of {known}")
    hints = get_type_hints(kind)
    arguments = {}
    for name, field in fields.items():
        if name in values:
            arguments[name] = _value(path + name, hints[name], values[name])
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ParameterError(f"missing parameter `{path}{name}`")
    try:
        return kind(**arguments)
    except (ValueError, TypeError) as error:
        raise ParameterError(f"{f'parameter `{path[:-1]}`' if path else 'parameters'}: {error}") from error


def _value(path: str, kind: Any, value: Any) -> Any:
    origin, options = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        return _union(path, options, value)
    if origin is Literal:
        if not any(value == option and type(value) is type(option) for option in options):
            raise _wrong(path, "one of " + ", ".join(repr(option) for option in options), value)
        return value
    if dataclasses.is_dataclass(kind):
        return _dataclass(path + ".", kind, value)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        try:
            return kind(value)
        except ValueError:
            raise _wrong(path, "one of " + ", ".join(repr(item.value) for item in kind), value) from None
    return _plain(path, origin or kind, options, value)


def _union(path: str, options: tuple[Any, ...], value: Any) -> Any:
    if value is None and type(None) in options:
        return None
    kinds = [option for option in options if option is not type(None)]
    for kind in kinds:
        try:
            return _value(path, kind, value)
        except ParameterError as error:
            last = error
    if len(kinds) == 1:
        raise last
    raise _wrong(path, " or ".join(getattr(kind, "__name__", str(kind)) for kind in kinds), value)


def _plain(path: str, kind: Any, options: tuple[Any, ...], value: Any) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is int and isinstance(value, bool):
        raise _wrong(path, "int", value)
    if kind in (list, tuple, set, frozenset):
        if not isinstance(value, list):
            raise _wrong(path, "a list", value)
        item = options[0] if options else Any
        return kind(_value(f"{path}[{index}]", item, element) for index, element in enumerate(value))
    if kind is dict:
        if not isinstance(value, Mapping):
            raise _wrong(path, "a table", value)
        item = options[1] if options else Any
        return {key: _value(f"{path}.{key}", item, element) for key, element in value.items()}
    if kind in (str, int, float, bool):
        if not isinstance(value, kind):
            raise _wrong(path, kind.__name__, value)
        return value
    raise ParameterError(f"parameter `{path}`: the plugin declares the type {kind!r}, which no parameter can have")


def _wrong(path: str, expected: str, value: object) -> ParameterError:
    where = f"parameter `{path.rstrip('.')}`" if path else "parameters"
    return ParameterError(f"{where}: expected {expected}, not {value!r:.80}")
