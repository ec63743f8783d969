"""Tests written as Python: `assert f(1) == 2`, a function `check(candidate)`, or functions `test_…` as pytest has them.

They run in a separate child, without the code that they test. The functions of the code are stand-ins. A call whose
answer is not known yet is noted, statements that depend on it are skipped, and the case is undecided. Another child,
which has only the code, then gives the answers, and the tests run again with them. An answer is data: whatever the code
replaces or returns, it runs no comparison of the tests, and none of its objects gets here.
"""

import ast
import builtins
import collections
import json
import random
import sys
import types

import little_pytest
import prelude
from signs import SIGNS
from values import NoForm, decode, encode

# The builtin names that a policy's code may redefine; a test that calls one calls that code.
BUILTINS = {name: getattr(builtins, name) for name in prelude.BUILTINS}


class Undecided(BaseException):
    """The next statement depends on an answer that is not known yet."""


class Unsupported(BaseException):
    """The tests use a value that cannot go from one child to another."""


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
    """An answer of a class that Python does not define: equal to nothing, and without attributes."""

    def __init__(self, name):
        self.__name = name

    def __repr__(self):
        return f"<{self.__name}>"


class Case:
    """A run of one case: its calls, with the known answers."""

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
            # No answer, if the code ended before, or a line that is not an answer.
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
    """Applies the code's changes to an argument."""
    if isinstance(argument, list) and isinstance(changed, list):
        argument[:] = changed
    elif isinstance(argument, (dict, set)) and isinstance(changed, type(argument)):
        argument.clear()
        argument.update(changed)


class Remote:
    """The stand-in of a name that the code defines."""

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
    """The names of a test; names that are not defined are those of the code."""

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
    stands_in = {"solution": solution, "pytest": little_pytest.module()}

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


def tests(names):
    """The functions `test_…` of a module, and those of its classes `Test…`, with their arguments."""
    for name, each in list(names.items()):
        if name.startswith("test") and isinstance(each, types.FunctionType):
            yield from ((name, each, row) for row in getattr(each, "rows", [{}]))
        elif name.startswith("Test") and isinstance(each, type):
            methods = [key for key in vars(each) if key.startswith("test")]
            yield from ((f"{name}.{key}", getattr(each(), key), {}) for key in methods)


def outcome(case, names, run):
    """Runs a case; gives its outcome, and why it failed."""
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
        # An import of the tests, not of the code.
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
    """The result of each case: its outcome, the reason, and all its calls."""
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
    """Answers each call with a line of JSON, until one of them ends the child."""
    for name, args, kwargs in calls:
        args, kwargs = decode(args), {key: decode(each) for key, each in kwargs}
        # Code without the function gives no answer; it must not raise an exception that a test may expect.
        function = find(name)
        try:
            value = function(*args, **kwargs)
            try:
                line = {"value": encode(value), "args": encode(args)}
            except NoForm as error:
                line = {"object": str(error)}
        except Exception as error:
            SIGNS.escaped(error)
            line = {"raised": [kind.__name__ for kind in type(error).__mro__], "text": str(error)}
        sys.__stdout__.write(json.dumps(line) + "\n")
        sys.__stdout__.flush()
