"""Python's values as JSON, so that they can go from one child to another. Only values of Python's own classes do: an
object whose class defines its own comparison does not."""

import collections
import collections.abc
import decimal
import fractions
import types

ITERATORS = (
    types.GeneratorType, map, filter, zip, enumerate, reversed,
    collections.abc.KeysView, collections.abc.ValuesView, collections.abc.ItemsView, collections.abc.Iterator,
)
SEQUENCES = {
    "tuple": tuple, "set": set, "frozenset": frozenset, "deque": collections.deque, "iterator": iter, "range": range,
}


class NoForm(Exception):
    """A value of another class."""


def encode(value):
    for kind, plain in ((str, str.__str__), (int, int.__int__), (float, float.__float__)):
        if isinstance(value, kind) and not isinstance(value, bool):
            return plain(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, list):
        return [encode(each) for each in list.__iter__(value)]
    if isinstance(value, dict):
        return {"dict": [[encode(key), encode(each)] for key, each in dict.items(value)]}
    for name in ("tuple", "set", "frozenset", "deque"):
        if isinstance(value, SEQUENCES[name]):
            return {name: [encode(each) for each in SEQUENCES[name].__iter__(value)]}
    if isinstance(value, range):
        return {"range": [value.start, value.stop, value.step]}
    if isinstance(value, ITERATORS):
        return {"iterator": [encode(each) for each in value]}
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": bytes(value).hex()}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, fractions.Fraction):
        return {"fraction": [value.numerator, value.denominator]}
    if isinstance(value, decimal.Decimal):
        return {"decimal": str(value)}
    raise NoForm(type(value).__name__)


def decode(value):
    if isinstance(value, list):
        return [decode(each) for each in value]
    if not isinstance(value, dict):
        return value
    (kind, value), = value.items()
    if kind == "dict":
        return {decode(key): decode(each) for key, each in value}
    if kind == "range":
        return range(*value)
    if kind in SEQUENCES:
        return SEQUENCES[kind]([decode(each) for each in value])
    if kind == "bytes":
        return bytes.fromhex(value)
    if kind == "complex":
        return complex(*value)
    if kind == "fraction":
        return fractions.Fraction(*value)
    return {"decimal": decimal.Decimal}[kind](value)
