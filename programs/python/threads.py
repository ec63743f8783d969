"""`threading` with one thread. A thread's work is done when it is started, on the same stack. Where it has to wait, threads
that have not begun run first; what is further down on the stack cannot go on. Code for which that is not enough asks for
its job to be repeated: then a thread begins only when another one waits."""

import _thread
import _threading_local
import collections
import concurrent.futures
import itertools
import os
import queue
import sys
import threading
import time

from signs import SIGNS

ALONE = "a thread waits for another, and there is only one"
# A thread that sleeps for so many seconds may wait for another to end it.
PATIENCE = 0.5
# Polls of an empty queue, one after the other, after which a thread waits for another.
POLLS = 1000


class Ended(BaseException):
    """Ends a thread, which waits for one that is further down on the stack."""


class Scheduler:
    def __init__(self):
        self.begins_late = self.has_cut = self.is_end = False
        # Those that have not begun; those on the stack, and the waits of each and of the main thread.
        self.waiting, self.stack, self.waits = collections.deque(), [], [None]
        self.main = threading._main_thread.ident
        self.idents = itertools.count(self.main + 1)
        self.sleep, self.now = time.sleep, time.monotonic

    def start(self, function, handle, daemon):
        self.waiting.append((function, handle, daemon))
        if not self.begins_late:
            self.begin()

    def begin(self):
        """Runs a thread to its end."""
        function, handle, daemon = self.waiting.popleft()
        handle.ident, handle.slept, handle.polls = next(self.idents), 0, 0
        self.stack.append((handle, daemon))
        self.waits.append(None)
        try:
            function()
        finally:
            self.waits.pop()
            self.stack.pop()
            handle.ended = True

    def finish(self):
        """What Python does at its end: it waits for all threads."""
        self.is_end = True
        while self.waiting:
            self.begin()

    def ident(self):
        return self.stack[-1][0].ident if self.stack else self.main

    def wait(self, is_over, timeout=-1, must=True):
        """Waits for another thread; whether the wait is over. What need not be waited for is given up where only a thread
        further down on the stack could end the wait."""
        if is_over():
            return True
        until = None if timeout is None or timeout < 0 else self.now() + timeout
        self.waits[-1] = lambda: until is not None or is_over()
        try:
            while not is_over():
                if self.waiting:
                    self.begin()
                elif until is not None:
                    self.sleep_in_turn(max(0, until - self.now()))
                    return is_over()
                elif not must and self.is_one_free():
                    return False
                else:
                    self.stuck()
        finally:
            self.waits[-1] = None
        return True

    def stuck(self):
        """No thread is left that could end this wait, save further down on the stack."""
        if not self.is_one_free():
            if self.has_cut:
                SIGNS.add("threads", ALONE)
            leave("the code waits for itself forever")
        self.end_thread()

    def is_one_free(self):
        """Whether a thread further down on the stack could go on."""
        return any(wait is None or wait() for wait in self.waits[:-1])

    def end_thread(self):
        if not self.begins_late:
            SIGNS.add("threads", ALONE)
            leave(ALONE)
        self.has_cut = True
        if not self.stack[-1][1]:
            SIGNS.add("threads", ALONE)
        raise Ended

    def poll(self):
        """Notes that the thread asked a queue in vain. One that goes on so waits for another, which has to begin or is
        further down on the stack."""
        if self.waiting:
            self.begin()
        elif self.stack:
            handle = self.stack[-1][0]
            handle.polls += 1
            if handle.polls > POLLS and self.is_one_free():
                self.end_thread()

    def sleep_in_turn(self, seconds):
        until = self.now() + seconds
        while self.waiting:
            self.begin()
        if self.stack:
            handle, daemon = self.stack[-1]
            handle.slept += seconds
            if handle.slept > PATIENCE and not self.begins_late or daemon and self.is_end:
                self.end_thread()
        self.sleep(max(0, until - self.now()) if seconds >= 0 else seconds)


SCHEDULER = Scheduler()


def leave(why):
    sys.__stderr__.write(why + "\n")
    os._exit(1)


class Handle:
    """A `_thread._ThreadHandle`."""

    def __init__(self, ident=None):
        self.ident, self.ended = ident, False

    def is_done(self):
        return self.ended

    def join(self, timeout=None):
        SCHEDULER.wait(self.is_done, timeout)

    def _set_done(self):
        self.ended = True


class Lock:
    __slots__ = ("is_held", "__weakref__")

    def __init__(self):
        self.is_held = False

    def acquire(self, blocking=True, timeout=-1):
        if self.is_held and not (blocking and SCHEDULER.wait(self.is_free, timeout)):
            return False
        self.is_held = True
        return True

    __enter__ = acquire_lock = acquire

    def is_free(self):
        return not self.is_held

    def release(self):
        if not self.is_held:
            raise RuntimeError("release unlocked lock")
        self.is_held = False

    release_lock = release

    def __exit__(self, *_):
        self.release()

    def locked(self):
        return self.is_held

    locked_lock = locked

    def _at_fork_reinit(self):
        self.is_held = False


def start_joinable_thread(function, handle=None, daemon=True):
    handle = Handle() if handle is None else handle
    # `Thread.start` waits for this, and so for the thread's beginning.
    thread = getattr(function, "__self__", None)
    if isinstance(thread, threading.Thread):
        thread._started._flag = True
    SCHEDULER.start(function, handle, daemon)
    return handle


def start_new_thread(function, args, kwargs={}):
    def run():
        try:
            function(*args, **kwargs)
        except (Ended, SystemExit):
            pass
        except BaseException:
            sys.excepthook(*sys.exc_info())

    handle = Handle()
    SCHEDULER.start(run, handle, True)
    return handle.ident or 0


def stack_size(size=0):
    if 0 < size < 32768 or size < 0:
        raise ValueError(f"size not valid: {size} bytes")
    old, stack_size.size = stack_size.size, size
    return old


stack_size.size = 0


def excepthook(args, old=threading.excepthook):
    if args.exc_type is not Ended:
        old(args)


class ThreadPoolExecutor(concurrent.futures.Executor):
    """Each piece of work has a thread of its own, which has the name of one of the workers."""

    pools = itertools.count()

    def __init__(self, max_workers=None, thread_name_prefix="", initializer=None, initargs=(), **_):
        if max_workers is not None and max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        self._max_workers = max_workers or 5
        self._prefix = thread_name_prefix or f"ThreadPoolExecutor-{next(self.pools)}"
        self._initializer, self._initargs = initializer, initargs
        self._threads, self._is_shut = [], False

    def submit(self, function, /, *args, **kwargs):
        if self._is_shut:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future, number = concurrent.futures.Future(), len(self._threads)
        name = f"{self._prefix}_{number % self._max_workers}"
        is_first = number < self._max_workers and self._initializer is not None
        thread = threading.Thread(name=name, target=self._work, args=(future, is_first, function, args, kwargs))
        self._threads.append(thread)
        thread.start()
        return future

    def _work(self, future, is_first, function, args, kwargs):
        if not future.set_running_or_notify_cancel():
            return
        try:
            if is_first:
                self._initializer(*self._initargs)
            result = function(*args, **kwargs)
        except Ended:
            raise
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    def shutdown(self, wait=True, *, cancel_futures=False):
        self._is_shut = True
        for thread in self._threads if wait else ():
            thread.join()


class ProcessPoolExecutor(ThreadPoolExecutor):
    pass


def put(self, item, block=True, timeout=None, put=queue.Queue.put):
    """`Queue.put`, which exceeds the queue's size where the thread that would empty it cannot go on."""
    def is_full():
        return 0 < self.maxsize <= self._qsize()

    if not block or timeout is not None or not is_full() or SCHEDULER.wait(lambda: not is_full(), must=False):
        return put(self, item, block, timeout)
    with self.mutex:
        self._put(item)
        self.unfinished_tasks += 1
        self.not_empty.notify()


def get(self, block=True, timeout=None, get=queue.Queue.get):
    """`Queue.get`, which lets other threads go on where it finds nothing."""
    try:
        item = get(self, block, timeout)
    except queue.Empty:
        SCHEDULER.poll()
        raise
    if SCHEDULER.stack:
        SCHEDULER.stack[-1][0].polls = 0
    return item


def install():
    # Its other classes are derived from it.
    queue.Queue.put, queue.Queue.get = put, get
    for module, names in (
        (_thread, {
            "start_joinable_thread": start_joinable_thread, "start_new_thread": start_new_thread,
            "start_new": start_new_thread, "_ThreadHandle": Handle, "_make_thread_handle": Handle,
            "allocate_lock": Lock, "allocate": Lock, "lock": Lock, "LockType": Lock, "RLock": threading._PyRLock,
            "get_ident": SCHEDULER.ident, "stack_size": stack_size, "_local": _threading_local.local,
        }),
        (threading, {
            "_start_joinable_thread": start_joinable_thread, "_ThreadHandle": Handle, "_make_thread_handle": Handle,
            "_allocate_lock": Lock, "Lock": Lock, "_LockType": Lock, "_CRLock": None, "get_ident": SCHEDULER.ident,
            "stack_size": stack_size, "excepthook": excepthook, "local": _threading_local.local,
        }),
        (queue, {"SimpleQueue": queue._PySimpleQueue}),
        (time, {"sleep": SCHEDULER.sleep_in_turn}),
        (concurrent.futures, {"ThreadPoolExecutor": ThreadPoolExecutor, "ProcessPoolExecutor": ProcessPoolExecutor}),
    ):
        vars(module).update(names)
    threading._main_thread._os_thread_handle = Handle(SCHEDULER.main)
