"""Tests written as Python: `assert f(1) == 2`, a function `check(candidate)`, or functions `test_…` as pytest has them.

They run in a child of their own, without the code that they test. What the tests call of it are stand-ins. A call whose
answer is not known yet is noted, what depends on it is skipped, and the case is undecided; another child, which has the
code and nothing else, is then asked for the answers, and the tests run again with them. An answer is data: whatever the
code replaces or returns, no comparison of the tests runs there, and no object of its own gets here.
"""

import ast
import builtins
import collections
import contextlib
import json
import random
import sys
import types

import prelude
from values import NoForm, decode, encode

# The names that a policy's code may define; a test that calls one calls that code.
BUILTINS = {name: getattr(builtins, name) for name in prelude.BUILTINS}


class Undecided(BaseException):
    """What happens next depends on an answer that is not known yet."""


class Unsupported(BaseException):
    """The tests ask for what cannot go from one child to another."""


def _undecided(*args, **kwargs):
    raise Undecided


class Unknown:
    """An answer that is not known yet."""

    __getattr__ = __hash__ = _undecided
    __class__ = property(_undecided)


for _name in """
    eq ne lt le gt ge bool len iter next getitem setitem delitem contains call str repr format int float complex index
    round abs neg pos invert enter exit bytes reversed add radd iadd sub rsub isub mul rmul imul truediv rtruediv floordiv
    rfloordiv mod rmod divmod rdivmod pow rpow lshift rlshift rshift rrshift and rand or ror xor rxor matmul rmatmul
""".split():
    setattr(Unknown, f"__{_name}__", _undecided)


class Opaque:
    """An answer of a class that Python does not define: equal to nothing, and without any attribute."""

    def __init__(self, name):
        self.__name = name

    def __repr__(self):
        return f"<{self.__name}>"


class Case:
    """A run of one case: what it calls, with the answers that are known."""

    def __init__(self, known, blank=False):
        self.known, self.blank = known, blank
        self.calls, self.is_undecided, self.is_lost = [], False, False

    def call(self, name, args, kwargs):
        try:
            call = [name, encode(list(args)), [[key, encode(each)] for key, each in kwargs.items()]]
        except NoForm as error:
            if str(error) == Opaque.__name__:
                raise TypeError("an object that the code made cannot go back to it") from None
            raise Unsupported(f"they call `{name}` with a {error}, which cannot go to another child") from None
        self.calls.append(call)
        if self.blank:
            return None
        answers = self.known.get(json.dumps(call))
        if not answers:
            self.is_undecided = True
            return Unknown()
        return self.answered(answers.popleft(), args)

    def answered(self, line, args):
        error = None
        try:
            answer = json.loads(line)
            if "raised" in answer:
                error = raised([str(name) for name in answer["raised"]], str(answer["text"]))
            elif "object" in answer:
                return Opaque(str(answer["object"]))
            else:
                value, after = decode(answer["value"]), decode(answer["args"])
                for argument, changed in zip(args, after):
                    change(argument, changed)
                return value
        except Exception:
            # Nothing, where the code ended before it answered, or what is not the line of an answer.
            self.is_lost = True
            return Opaque("no answer")
        raise error


def raised(names, text):
    """The exception of the code, or the one of Python that its class is derived from."""
    for name in names:
        kind = BUILTINS.get(name)
        if isinstance(kind, type) and issubclass(kind, Exception):
            error = kind.__new__(kind)
            error.args = (text,)
            break
    else:
        error = Exception(text)
    error.names = names
    return error


def change(argument, changed):
    """Does to an argument what the code did to it."""
    if isinstance(argument, list) and isinstance(changed, list):
        argument[:] = changed
    elif isinstance(argument, (dict, set)) and isinstance(changed, type(argument)):
        argument.clear()
        argument.update(changed)


class Remote:
    """The stand-in of what the code defines under a name."""

    def __init__(self, case, name, is_imported=False):
        self.__dict__.update(_case=case, _name=name, __name__=name, _is_class=is_imported and name[:1].isupper())

    def __call__(self, *args, **kwargs):
        if self._is_class:
            raise Unsupported(f"they make an object of `{self._name}`, which the response defines")
        return self._case.call(self._name, args, kwargs)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if self._name in prelude.BARE.split():
            return getattr(sys.modules[self._name], name)
        raise Unsupported(f"they use `{self._name}.{name}`, which the response defines")


class Names(dict):
    """The names of a test; those that nothing defines are the code's."""

    def __init__(self, case):
        super().__init__(__name__="test", __builtins__=BUILTINS | {"__import__": importer(case)}, __undecided__=Undecided)
        self.case = case

    def __missing__(self, name):
        if name in BUILTINS or name.startswith("__"):
            raise KeyError(name)
        return Remote(self.case, name)


def importer(case):
    solution = types.ModuleType("solution")
    solution.__all__ = []
    solution.__getattr__ = lambda name: _missing(name) if name.startswith("__") else Remote(case, name, True)
    stands_in = {"solution": solution, "pytest": pytest()}

    def load(name, *args, **kwargs):
        return stands_in[name] if name in stands_in else builtins.__import__(name, *args, **kwargs)

    return load


def _missing(name):
    raise AttributeError(name)


class Steps(ast.NodeTransformer):
    """Skips each statement that depends on an answer that is not known yet."""

    def generic_visit(self, node):
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list) and not isinstance(node, ast.ClassDef):
                setattr(node, field, [self.skips(each) for each in body])
        return node

    def skips(self, node):
        definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Global)
        if isinstance(node, (*definitions, ast.Nonlocal, ast.Pass)):
            return node
        handler = ast.ExceptHandler(ast.Name("__undecided__", ast.Load()), None, [ast.Pass()])
        return ast.copy_location(ast.Try([node], [handler], [], []), node)


def compiled(source, name):
    return compile(ast.fix_missing_locations(Steps().visit(ast.parse(source))), name, "exec")


def pytest():
    """As much of pytest as a test of a function needs."""

    class Raises(contextlib.AbstractContextManager):
        def __init__(self, expected, match=None):
            self.expected, self.match, self.value = expected, match, None

        def __exit__(self, kind, error, _):
            if kind is not None and issubclass(kind, (Undecided, Unsupported)):
                return False
            assert error is not None, "it raised nothing"
            expected = self.expected if isinstance(self.expected, tuple) else (self.expected,)
            names = {each._name for each in expected if isinstance(each, Remote)}
            classes = tuple(each for each in expected if isinstance(each, type))
            if not isinstance(error, classes) and not names.intersection(getattr(error, "names", [])):
                return False
            if self.match is not None:
                import re
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

    module = types.ModuleType("pytest")
    module.raises, module.approx = Raises, Approx
    module.mark = types.SimpleNamespace(parametrize=parametrize)
    return module


def tests(names):
    """The functions `test_…` of a module, and those of its classes `Test…`, with what they are called with."""
    for name, each in list(names.items()):
        if name.startswith("test") and isinstance(each, types.FunctionType):
            yield from ((name, each, row) for row in getattr(each, "rows", [{}]))
        elif name.startswith("Test") and isinstance(each, type):
            methods = [key for key in vars(each) if key.startswith("test")]
            yield from ((f"{name}.{key}", getattr(each(), key), {}) for key in methods)


def outcome(case, names, run):
    """Runs a case: whether it passed, and why not."""
    random.seed(0)
    try:
        run(names)
    except Unsupported as error:
        return "unsupported", str(error)
    except Undecided:
        pass
    except AssertionError as error:
        if not case.is_undecided:
            return "failed", str(error) or "an assertion is not true"
    except ImportError as error:
        # Of the tests, and not of the code.
        if not hasattr(error, "names"):
            return "unsupported", str(error)
        return "failed", str(error)
    except BaseException as error:
        if not case.is_undecided:
            return "failed", f"{type(error).__name__}: {error}"
    if case.is_undecided:
        return "undecided", ""
    return ("failed", "the code ended before it answered") if case.is_lost else ("passed", "")


def judge(job):
    """What becomes of each case: its outcome, why, and all that it calls."""
    setup = compiled(job["setup"], "setup")
    if job["cases"] is None:
        names = Names(Case({}, blank=True))
        exec(setup, names)
        runs = [(name, lambda names, nth=nth: run_test(names, nth)) for nth, (name, *_) in enumerate(tests(names))]
    else:
        code = [(source, compiled(source, "test")) for source in job["cases"]]
        runs = [(source, lambda names, code=code: exec(code, names)) for source, code in code]
    return [judge_case(setup, name, run, job, nth) for nth, (name, run) in enumerate(runs[: job["most"]])]


def run_test(names, nth):
    _, test, row = list(tests(names))[nth]
    test(**row)


def judge_case(setup, name, run, job, nth):
    def all_of(names):
        exec(setup, names)
        run(names)

    known = collections.defaultdict(collections.deque)
    for call, line in job["answers"][nth] if nth < len(job["answers"]) else []:
        known[json.dumps(call)].append(line)
    case = Case(known)
    found, why = outcome(case, Names(case), all_of)
    blank = Case({}, blank=True)
    is_blank = outcome(blank, Names(blank), all_of)[0] == "passed"
    return {"name": name, "outcome": found, "why": why, "calls": case.calls, "blank": is_blank}


def answer(calls, find):
    """Answers each call, a line of JSON each, until one of them ends the child."""
    for name, args, kwargs in calls:
        args, kwargs = decode(args), {key: decode(each) for key, each in kwargs}
        # Code without the function answers nothing; it does not raise what a test may expect.
        function = find(name)
        try:
            value = function(*args, **kwargs)
            try:
                line = {"value": encode(value), "args": encode(args)}
            except NoForm as error:
                line = {"object": str(error)}
        except Exception as error:
            line = {"raised": [kind.__name__ for kind in type(error).__mro__], "text": str(error)}
        sys.__stdout__.write(json.dumps(line) + "\n")
        sys.__stdout__.flush()
