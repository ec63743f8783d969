"""The part of pytest that a test of a function needs."""

import contextlib
import re
import types


def module():

    class Raises(contextlib.AbstractContextManager):
        def __init__(self, expected, match=None):
            self.expected, self.match, self.value = expected, match, None

        def __exit__(self, kind, error, _):
            if kind is not None and not issubclass(kind, Exception):
                return False
            assert error is not None, "it raised nothing"
            expected = self.expected if isinstance(self.expected, tuple) else (self.expected,)
            classes = tuple(each for each in expected if isinstance(each, type))
            # Classes that the code defines have stand-ins; an answer has the name of its class.
            names = {each.__name__ for each in expected if not isinstance(each, type)}
            if not isinstance(error, classes) and not names.intersection(getattr(error, "names", [])):
                return False
            if self.match is not None:
                assert re.search(self.match, str(error)), f"{str(error)!r} does not match {self.match!r}"
            self.value, self.type = error, kind
            return True

    class Approx:
        def __init__(self, expected, rel=None, abs=None, nan_ok=False):
            self.expected, self.rel, self.abs, self.nan_ok = expected, rel, abs, nan_ok

        def __eq__(self, value):
            return self.near(self.expected, value)

        def near(self, expected, value):
            if isinstance(expected, dict):
                return isinstance(value, dict) and expected.keys() == value.keys() and all(
                    self.near(expected[key], value[key]) for key in expected)
            if isinstance(expected, (list, tuple)):
                return isinstance(value, (list, tuple)) and len(expected) == len(value) and all(
                    map(self.near, expected, value))
            if expected == value:
                return True
            if not isinstance(value, (int, float, complex)) or not isinstance(expected, (int, float, complex)):
                return False
            if expected != expected or value != value:
                return self.nan_ok and expected != expected and value != value
            if abs(expected) == float("inf"):
                return False
            absolute = 1e-12 if self.abs is None else self.abs
            relative = 0 if self.rel is None and self.abs is not None else self.rel or 1e-6
            return abs(expected - value) <= max(absolute, relative * abs(expected))

        __hash__ = None

    def parametrize(names, rows, **_):
        names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)

        def mark(function):
            table = [dict(zip(names, row if len(names) > 1 else (row,))) for row in rows]
            old = getattr(function, "rows", [{}])
            function.rows = [{**one, **other} for one in old for other in table]
            return function

        return mark

    made = types.ModuleType("pytest")
    made.raises, made.approx = Raises, Approx
    made.mark = types.SimpleNamespace(parametrize=parametrize)
    return made
