"""Errors that name what is absent, where Python's own errors do not."""

from __future__ import annotations

import builtins
import importlib.machinery
import io
import os
import sys
import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import NoReturn

NETWORK = "there is no network in this session"
PROCESSES = "there are no processes in this session"
THREADS = "there are no threads in this session: call the function itself"
TASKS = "there are no tasks in this session: call functions one after the other"
FILES = "there are no files in this session: keep data in variables"
NOT_STANDARD = "only modules of Python's standard library can be imported here"
LEFT_OUT = "this module of Python's standard library is not part of the session"
LASTS = "the session ends with the conversation"

# Some of them can be imported in a component, and their functions do not work.
MODULES = {
    "aiohttp": NETWORK, "ftplib": NETWORK, "http.client": NETWORK, "httpx": NETWORK, "requests": NETWORK,
    "smtplib": NETWORK, "socket": NETWORK, "ssl": NETWORK, "urllib.request": NETWORK, "urllib3": NETWORK,
    "multiprocessing": PROCESSES, "subprocess": PROCESSES, "concurrent.futures.process": PROCESSES,
    "asyncio": TASKS,
}  # fmt: skip


class Absent(importlib.machinery.PathFinder):
    """Finds no module, and raises an error with the reason. It comes last."""

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> NoReturn:
        is_standard = fullname.partition(".")[0] in sys.stdlib_module_names
        why = MODULES.get(fullname) or (LEFT_OUT if is_standard else NOT_STANDARD)
        raise ModuleNotFoundError(f"No module named {fullname!r}: {why}", name=fullname)


def explain_what_is_absent() -> None:
    for name in list(sys.modules):
        if name in MODULES or name.partition(".")[0] in MODULES:
            del sys.modules[name]
    sys.meta_path.append(Absent)
    # `site` makes them elsewhere.
    builtins.exit = builtins.quit = sys.exit
    refuse(builtins, ("input",), EOFError, "there is no input in this session: set the value in the code")
    for module in (builtins, io):
        refuse(module, ("open",), OSError, FILES)
    refuse(os, ("_exit", "abort"), RuntimeError, LASTS)
    refuse(os, ("fork", "forkpty", "popen", "posix_spawn", "system"), OSError, PROCESSES)
    refuse(threading.Thread, ("start",), RuntimeError, THREADS)


def refuse(owner: object, names: Sequence[str], error: type[Exception], why: str) -> None:
    """Makes these functions of `owner` raise an error."""
    for name in names:
        setattr(owner, name, _refusal(error, why))


def _refusal(error: type[Exception], why: str) -> Callable[..., NoReturn]:
    def refused(*_: object, **__: object) -> NoReturn:
        raise error(why)

    return refused
