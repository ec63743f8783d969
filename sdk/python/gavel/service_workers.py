"""Processes that judge: each loads the user's function from its file, and calls
it in its main thread, one request at a time."""

from __future__ import annotations

import importlib.util
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

from .service_messages import Answer
from .service_protocol import Judge
from .verl import scorer

__all__ = ["Workers", "judge", "load"]


def load(path: str, name: str, verl: bool) -> Callable[..., Any]:
    """The function of a file, as one of a sample and its reference if it was
    written for verl. A `ValueError` says what is wrong."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(Path(path).resolve().parent))
    spec.loader.exec_module(module)
    function: Callable[..., Any] | None = getattr(module, name, None)
    if function is None:
        raise ValueError(f"{path} has no function `{name}`")
    return scorer(function) if verl else function


class Workers(Executor):
    """Processes, as many as do work at once. One that dies takes its own work
    with it, and no other."""

    def __init__(self, path: str, name: str, verl: bool) -> None:
        self._loads = path, name, verl
        # Each is a pool of one process: a pool of several ends with the first that dies.
        self._all: set[ProcessPoolExecutor] = set()
        self._idle: deque[ProcessPoolExecutor] = deque()
        # Since Python 3.12, the thread of a pool that breaks has a lock while it says so, which `shutdown` and the end
        # of the pool's last reference take. So a broken pool is kept until another thread drops it.
        self._broken: deque[ProcessPoolExecutor] = deque()

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        while self._broken:
            self._drop(self._broken.popleft())
        worker = self._idle.pop() if self._idle else self._started()
        try:
            done = worker.submit(work, *arguments, **named)
        except BrokenExecutor:  # It died while it was idle.
            self._drop(worker)
            worker = self._started()
            done = worker.submit(work, *arguments, **named)
        done.add_done_callback(lambda done: self._ended(worker, done))
        return done

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        for worker in list(self._all):
            worker.shutdown(wait, cancel_futures=cancel_futures)

    def _started(self) -> ProcessPoolExecutor:
        # A fork would not get the GPU, nor the threads, of a function's packages.
        context = multiprocessing.get_context("spawn")
        worker = ProcessPoolExecutor(1, context, initializer=_start, initargs=self._loads)
        self._all.add(worker)
        return worker

    def _ended(self, worker: ProcessPoolExecutor, done: Future[Any]) -> None:
        if not done.cancelled() and isinstance(done.exception(), BrokenExecutor):
            self._broken.append(worker)
        else:
            self._idle.append(worker)

    def _drop(self, worker: ProcessPoolExecutor) -> None:
        self._all.discard(worker)
        worker.shutdown(wait=False)


def judge(body: bytes) -> Answer:
    """Judges in a worker."""
    assert _judge is not None
    return _judge(body)


_judge: Judge | None = None


def _start(path: str, name: str, verl: bool) -> None:
    global _judge
    # The server ends its workers, after their last answers.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_server, daemon=True).start()
    _judge = Judge(load(path, name, verl))


def _end_with_server() -> None:
    server = multiprocessing.parent_process()
    assert server is not None
    multiprocessing.connection.wait([server.sentinel])
    os._exit(1)
