"""`multiprocessing`: processes are threads, which share their memory."""

import queue
import sys
import threading
import traceback
import types

from threads import ThreadPoolExecutor


def module(name, **names):
    """Makes a module that can be imported."""
    made = sys.modules[name] = types.ModuleType(name)
    vars(made).update(names)
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, made)
    return made


class Process(threading.Thread):
    def __init__(self, group=None, target=None, name=None, args=(), kwargs={}, *, daemon=None):
        super().__init__(None, target, name, args, kwargs, daemon=daemon)

    pid = property(lambda self: self.ident)
    exitcode = property(lambda self: self._status if self._started.is_set() and not self.is_alive() else None)
    _status = 0

    def _bootstrap_inner(self):
        """Runs `run` as a process does: an exception or an exit is its status."""
        run = self.run

        def child():
            try:
                run()
            except SystemExit as exit:
                self._status = status_of(exit)
            except Exception:
                self._status = 1
                sys.stderr.write(f"Process {self.name}:\n{traceback.format_exc()}")

        self.run = child
        super()._bootstrap_inner()

    def terminate(self):
        pass

    kill = close = terminate


def status_of(exit):
    if exit.code is None:
        return 0
    if isinstance(exit.code, int):
        return exit.code & 255
    sys.stderr.write(f"{exit.code}\n")
    return 1


class Result:
    def __init__(self, futures, callback, is_one):
        self.futures, self.is_one = futures, is_one
        if callback is not None:
            callback(self.get())

    def get(self, timeout=None):
        results = [each.result(timeout) for each in self.futures]
        return results[0] if self.is_one else results

    def wait(self, timeout=None):
        for each in self.futures:
            each.exception(timeout)

    def ready(self):
        return all(each.done() for each in self.futures)

    def successful(self):
        return all(each.exception() is None for each in self.futures)


class Pool:
    def __init__(self, processes=None, initializer=None, initargs=(), maxtasksperchild=None, context=None):
        self.executor = ThreadPoolExecutor(processes or 1, "", initializer, initargs)

    def apply_async(self, function, args=(), kwds={}, callback=None, error_callback=None):
        return Result([self.executor.submit(function, *args, **kwds)], callback, True)

    def starmap_async(self, function, iterable, chunksize=None, callback=None, error_callback=None):
        return Result([self.executor.submit(function, *args) for args in iterable], callback, False)

    def map_async(self, function, iterable, chunksize=None, callback=None, error_callback=None):
        return self.starmap_async(function, ((each,) for each in iterable), None, callback)

    def apply(self, function, args=(), kwds={}):
        return self.apply_async(function, args, kwds).get()

    def map(self, function, iterable, chunksize=None):
        return self.map_async(function, iterable).get()

    def starmap(self, function, iterable, chunksize=None):
        return self.starmap_async(function, iterable).get()

    def imap(self, function, iterable, chunksize=1):
        return iter(self.map(function, iterable))

    imap_unordered = imap

    def close(self):
        self.executor.shutdown(False)

    terminate = close

    def join(self):
        self.executor.shutdown()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.terminate()


class Queue(queue.Queue):
    def close(self):
        pass

    join_thread = cancel_join_thread = close


class Value:
    def __init__(self, code, value=0, lock=True):
        self.value, self.lock = value, threading.RLock()

    def get_lock(self):
        return self.lock


class Connection:
    def __init__(self, inbox, outbox):
        self.inbox, self.outbox = inbox, outbox

    def send(self, value):
        self.outbox.put(value)

    def recv(self):
        return self.inbox.get()

    def poll(self, timeout=0):
        return not self.inbox.empty()

    def close(self):
        pass


def pipe(duplex=True):
    one, other = queue.Queue(), queue.Queue()
    return Connection(one, other), Connection(other, one)


class Manager:
    list, dict, Namespace = list, dict, types.SimpleNamespace
    Queue, Lock, RLock, Event = Queue, staticmethod(threading.Lock), staticmethod(threading.RLock), threading.Event
    Value = Value

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def shutdown(self):
        pass


def array_of(code, values, lock=True):
    return [0] * values if isinstance(values, int) else list(values)


def install():
    names = dict(
        Process=Process, Pool=Pool, Queue=Queue, JoinableQueue=Queue, SimpleQueue=Queue, Value=Value, RawValue=Value,
        Array=array_of, RawArray=array_of, Manager=Manager, Pipe=pipe, Lock=threading.Lock, RLock=threading.RLock,
        Semaphore=threading.Semaphore, BoundedSemaphore=threading.BoundedSemaphore, Event=threading.Event,
        Condition=threading.Condition, Barrier=threading.Barrier, cpu_count=lambda: 1, freeze_support=lambda: None,
        current_process=threading.current_thread, active_children=list, set_start_method=lambda *_, **__: None,
        get_start_method=lambda *_: "fork", TimeoutError=TimeoutError,
    )
    whole = module("multiprocessing", **names)
    whole.get_context = lambda *_: whole
    module("multiprocessing.pool", Pool=Pool, ThreadPool=Pool)
    module("multiprocessing.dummy", **names)
    module("multiprocessing.managers", SyncManager=Manager)
