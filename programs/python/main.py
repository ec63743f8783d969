"""CPython as a program of the sandbox. It runs one piece of code that a policy
wrote, in a fresh child that sees only its job.

The job is JSON, the first argument: `code`, and for a function `function` and
`arguments` (a list: the function, or the method of `Solution` with this name, is
called with them). With `calls`, a list, the results of several calls are wanted, in
the form of values.py. Without either the code is a program, which reads stdin. In
place of `code`, `tests` are tests to run, which checks.py describes.

A job that reports on stderr that it should be repeated, as signs.py describes, is repeated with `repeat`: the ways that
it reported.

The output of a program goes to stdout. Results go there as lines of JSON, and the output of a function goes to stderr.
The status is 0 if the code ended well, else 1 with the traceback on stderr.

Nothing here has to withstand the code, which shares the interpreter. Whatever
it replaces, it can only change the output of this child, which is its own
answer. The expected answer is not in this process.
"""

import ast
import atexit
import builtins
import collections
import gc
import io
import json
import os
import sys
import traceback
import types

import prelude  # first: it replaces what other modules import

import checks
import wide
import wordsize
from componentize_py_types import Err
from signs import SIGNS, cut
from threads import SCHEDULER
from wit_world import exports
from wit_world.imports import environment

# Programs recurse as deep as their input; the stack of the sandbox ends before this does.
sys.setrecursionlimit(600_000)
# The limit is for servers, whose requests have no time limit.
sys.set_int_max_str_digits(0)
# These objects stay alive: the garbage collector need not look through them.
gc.freeze()


# How this job is repeated.
WAYS = set()


class Run(exports.Run):
    def run(self) -> None:
        job = json.loads(environment.get_arguments()[1])
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        sys.argv = ["main.py"]
        open_streams()
        SIGNS.watch()
        WAYS.update(job.pop("repeat", ()))
        if "wide" in WAYS or "tests" in job:
            wide.install(prelude.names)
        SCHEDULER.begins_late = "threads" in WAYS
        try:
            answer = None
            if "function" in job:
                answer = call(job, module)
            elif "calls" in job:
                answer_calls(job)
            elif "tests" in job:
                sys.stdout = unanswered()
                answer = json.dumps(checks.judge(job["tests"]))
            else:
                execute(job["code"], module)
        except SystemExit as exit:
            failed = exit.code not in (None, 0) or "code" not in job or len(job) > 1
            if failed:
                print("exit:", exit.code, file=sys.__stderr__)
        except BaseException as error:
            failed = True
            sys.__stderr__.write(traceback.format_exc(limit=-8))
            SIGNS.escaped(error)
            cut(error)
        else:
            failed = False
        if not failed:
            SCHEDULER.finish()
        flush()
        if failed:
            SIGNS.report(WAYS)
            flush()
            raise Err(None)
        if answer is not None:
            sys.__stdout__.write(answer + "\n")
        elif "calls" not in job:
            end()
        SIGNS.report(WAYS)
        flush()


def open_streams():
    """Opens stdin, stdout and stderr as Python does for pipes. Those of componentize-py have no buffer: a text is one
    write to the host, which need not take all of it, and the rest would be lost."""
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.__stderr__ = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)


def flush():
    """Flushes the code's output, even if it replaced these streams."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            stream.flush()
        except Exception:
            pass


def end():
    """Does the work of an interpreter's end that affects the output. The interpreter flushes the code's own streams
    when it frees them, which takes time and, for deeply nested objects, more stack than there is."""
    atexit._run_exitfuncs()
    for each in gc.get_referrers(*WRITERS):
        if isinstance(each, WRITERS):
            try:
                each.flush()
            except Exception:
                pass


WRITERS = (io.TextIOWrapper, io.BufferedWriter)


def leave(status, now=os._exit):
    """`os._exit` that loses no output."""
    flush()
    SIGNS.report(WAYS)
    flush()
    now(status)


os._exit = leave


def execute(code, module):
    if "hash" in code and wordsize.asks_hash(ast.parse(code, "main.py")):
        builtins.hash = wordsize.wide_hash
    if "wide" in WAYS:
        code = wide.rewritten(ast.parse(code, "main.py"))
    exec(compile(code, "main.py", "exec"), module.__dict__)


def unanswered():
    """A stream for output that is not an answer."""
    return open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)


def answer_calls(job):
    """Answers calls of the code as an imported module: its main program does not run."""
    sys.stdout = unanswered()
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    execute(job["code"], module)
    checks.answer(job["calls"], lambda name: find(module, name))


def call(job, module):
    """The function's result as JSON."""
    sys.stdout = unanswered()
    execute(job["code"], module)
    result = find(module, job["function"])(*job["arguments"])
    return json.dumps(plain(result), separators=(",", ":"))


def find(module, name):
    solution = getattr(module, "Solution", None)
    if hasattr(solution, name):
        return getattr(solution(), name)
    return getattr(module, name)


def plain(value):
    """The value as JSON: tuples become lists, and so do the iterables of the
    standard library that functions often return."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, range, map, filter, zip, collections.deque)):
        return [plain(each) for each in value]
    raise TypeError(f"the function returned a {type(value).__name__}, which has no form as JSON")
