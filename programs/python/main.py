"""CPython as a program of the sandbox: runs one piece of code that a policy
wrote, in a fresh child that sees its job and nothing else.

The job is JSON on stdin: `code`, and either `stdin` (a text: the code is a
program) or `function` and `arguments` (a list: the function, or the method of
`Solution` with this name, is called with them).

What a program prints goes to stdout. A function's result goes there as one
line of JSON, and what it prints goes to stderr. The status is 0 where the code
ended well, else 1 with the traceback on stderr.

Nothing here has to withstand the code, which shares the interpreter: whatever
it replaces, it can only change what this child says, and that is its own
answer. What the answer should be is not in this process.
"""

import collections
import io
import json
import sys
import traceback
import types

import prelude  # what it does is enough
from componentize_py_types import Err
from wit_world import exports

# Programs recurse as deep as their input; the stack of the sandbox ends before this does.
sys.setrecursionlimit(600_000)


class Run(exports.Run):
    def run(self) -> None:
        job = json.loads(sys.stdin.buffer.read())
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        function = job.get("function")
        flush = flusher()
        try:
            if function is None:
                sys.stdin = io.TextIOWrapper(io.BytesIO(job["stdin"].encode()), encoding="utf-8")
                sys.argv = ["main.py"]
                module.open = open_stdin
                execute(job["code"], module)
                flush()
            else:
                answer = sys.stdout
                sys.stdout = sys.stderr
                execute(job["code"], module)
                result = find(module, function)(*job["arguments"])
                answer.write(json.dumps(plain(result)) + "\n")
                answer.flush()
        except SystemExit as exit:
            flush()
            if exit.code not in (None, 0) or function is not None:
                print("exit:", exit.code, file=sys.__stderr__)
                raise Err(None) from None
        except BaseException:
            flush()
            sys.__stderr__.write(traceback.format_exc(limit=-8))
            raise Err(None) from None


def open_stdin(file, mode="r", *args, **kwargs):
    """`open`, for which 0 is what the code reads: the descriptor 0 was the job."""
    if file == 0 and file is not False:
        return sys.stdin.buffer if "b" in mode else sys.stdin
    return open(file, mode, *args, **kwargs)


def execute(code, module):
    exec(compile(code, "main.py", "exec"), module.__dict__)


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


def flusher():
    """Flushes what the code printed, also where it put another stream in the
    place of stdout."""
    stdout = sys.stdout

    def flush():
        for stream in (sys.stdout, stdout):
            try:
                stream.flush()
            except Exception:
                pass

    return flush
