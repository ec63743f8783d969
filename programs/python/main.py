"""CPython as a program of the sandbox: runs one piece of code that a policy
wrote, in a fresh child that sees its job and nothing else.

The job is JSON, the first argument: `code`, and for a function `function` and
`arguments` (a list: the function, or the method of `Solution` with this name, is
called with them). With `calls`, a list, the results of several calls are wanted, in
the form of values.py. Without either the code is a program, which reads stdin. In
place of `code`, `tests` are tests to run, which checks.py describes.

What a program prints goes to stdout. Results go there as lines of JSON, and what a
function prints goes to stderr. The status is 0 where the code ended well, else 1
with the traceback on stderr.

Nothing here has to withstand the code, which shares the interpreter: whatever
it replaces, it can only change what this child says, and that is its own
answer. What the answer should be is not in this process.
"""

import atexit
import collections
import gc
import io
import json
import os
import sys
import traceback
import types

import checks
import prelude  # what it does is enough
from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import environment

# Programs recurse as deep as their input; the stack of the sandbox ends before this does.
sys.setrecursionlimit(600_000)
# The limit is for servers, whose requests have no limit of time.
sys.set_int_max_str_digits(0)
# What is there now stays: nobody need look through it for garbage.
gc.freeze()


class Run(exports.Run):
    def run(self) -> None:
        job = json.loads(environment.get_arguments()[1])
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        sys.argv = ["main.py"]
        open_streams()
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
        except BaseException:
            failed = True
            sys.__stderr__.write(traceback.format_exc(limit=-8))
        else:
            failed = False
        flush()
        if failed:
            raise Err(None)
        if answer is not None:
            sys.__stdout__.write(answer + "\n")
        elif "calls" not in job:
            end()
        flush()


def open_streams():
    """Opens stdin, stdout and stderr as Python does where they are pipes. Those of componentize-py have no buffer: a
    text is one write to the host, which need not take all of it, and then nobody writes the rest."""
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.__stderr__ = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)


def flush():
    """Flushes what the code printed, also where it put other streams in the place of these."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            stream.flush()
        except Exception:
            pass


def end():
    """Does what an interpreter does at its end and the output depends on. It flushes streams of the code's own when it
    frees them, which takes time and, where objects are deeply nested, more stack than there is."""
    atexit._run_exitfuncs()
    for each in gc.get_referrers(*WRITERS):
        if isinstance(each, WRITERS):
            try:
                each.flush()
            except Exception:
                pass


WRITERS = (io.TextIOWrapper, io.BufferedWriter)


def leave(status, now=os._exit):
    """`os._exit`, with which nothing that was printed is lost."""
    flush()
    now(status)


os._exit = leave


def execute(code, module):
    exec(compile(code, "main.py", "exec"), module.__dict__)


def unanswered():
    """A stream for what is not an answer."""
    return open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)


def answer_calls(job):
    """Answers calls as those of a module that is imported: what it does as a program, it does not do."""
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
    """The value as JSON has it: tuples are lists, and so are the iterables of
    the standard library that a result often is."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, range, map, filter, zip, collections.deque)):
        return [plain(each) for each in value]
    raise TypeError(f"the function returned a {type(value).__name__}, which has no form as JSON")
