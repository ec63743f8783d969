"""Modules that cannot be here, in forms that do what programs of contests want of them."""

import builtins
import io
import os
import signal
import sys
import time
import types

import processes
from processes import module


# resource: there is no limit to raise.

def resource():
    limits = {}
    names = "CPU FSIZE DATA STACK CORE RSS NPROC NOFILE MEMLOCK AS".split()
    usage = types.SimpleNamespace(
        ru_utime=0.0, ru_stime=0.0, ru_maxrss=0, ru_ixrss=0, ru_idrss=0, ru_isrss=0, ru_minflt=0, ru_majflt=0, ru_nswap=0,
        ru_inblock=0, ru_oublock=0, ru_msgsnd=0, ru_msgrcv=0, ru_nsignals=0, ru_nvcsw=0, ru_nivcsw=0,
    )

    def getrusage(_):
        usage.ru_utime = time.perf_counter()
        return usage

    module(
        "resource",
        **{f"RLIMIT_{name}": number for number, name in enumerate(names)},
        RLIM_INFINITY=-1, RUSAGE_SELF=0, RUSAGE_CHILDREN=-1, error=OSError,
        getrlimit=lambda which: limits.get(which, (-1, -1)),
        setrlimit=lambda which, both: limits.update({which: tuple(both)}),
        getrusage=getrusage, getpagesize=lambda: 4096,
    )


# ctypes: whole numbers of C, which wrap around, and arrays of them.

class Kind(type):
    def __mul__(cls, size):
        return type(cls)(f"{cls.__name__}_Array_{size}", (Array,), {"_type_": cls, "_length_": size})

    __rmul__ = __mul__


class Simple(metaclass=Kind):
    convert = staticmethod(lambda value: value)
    default = None

    def __init__(self, value=None):
        self.value = self.default if value is None else value

    def __setattr__(self, name, value):
        super().__setattr__(name, self.convert(value) if name == "value" else value)

    def __repr__(self):
        return f"{type(self).__name__}({self.value!r})"


class Array(metaclass=Kind):
    def __init__(self, *values):
        self.items = [self.one(each) for each in values] + [MISSING] * (self._length_ - len(values))

    def one(self, value):
        return self._type_(value).value if issubclass(self._type_, Simple) else value

    def __len__(self):
        return self._length_

    def __getitem__(self, at):
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(len(self)))]
        if self.items[at] is MISSING:
            if self._type_.default is None:
                raise ValueError("PyObject is NULL")
            return self._type_.default
        return self.items[at]

    def __setitem__(self, at, value):
        self.items[at] = [self.one(each) for each in value] if isinstance(at, slice) else self.one(value)


MISSING = object()


def ctypes():
    def whole(bits, signed):
        def convert(value):
            if not isinstance(value, int):
                raise TypeError(f"an integer is required (got type {type(value).__name__})")
            value &= (1 << bits) - 1
            return value - (1 << bits) if signed and value >> bits - 1 else value

        return {"convert": staticmethod(convert), "default": 0, "bits": bits}

    sizes = {"byte": 8, "short": 16, "int": 32, "long": 64, "longlong": 64, "int8": 8, "int16": 16, "int32": 32, "int64": 64}
    made = {}
    for name, bits in sizes.items():
        made[f"c_{name}"] = Kind(f"c_{name}", (Simple,), whole(bits, True))
        made[f"c_u{name}"] = Kind(f"c_u{name}", (Simple,), whole(bits, False))
    made["c_size_t"], made["c_ssize_t"] = made["c_ulong"], made["c_long"]
    for name, kind, bits in (("float", float, 32), ("double", float, 64), ("bool", bool, 8)):
        made[f"c_{name}"] = Kind(f"c_{name}", (Simple,), {"convert": kind, "default": kind(), "bits": bits})
    made["py_object"] = Kind("py_object", (Simple,), {})

    def sizeof(value):
        kind = value if isinstance(value, type) else type(value)
        return kind._length_ * sizeof(kind._type_) if issubclass(kind, Array) else getattr(kind, "bits", 64) // 8

    module("ctypes", **made, sizeof=sizeof, Array=Array)


# What is missing in modules that are here.

STREAMS = {"/dev/stdin": 0, "/dev/fd/0": 0, "/proc/self/fd/0": 0, "/dev/stdout": 1, "/dev/stderr": 2}


def open_stream(file, *args, old=io.open, **kwargs):
    if isinstance(file, str) and file in STREAMS:
        kwargs.setdefault("closefd", False)
        return old(STREAMS[file], *args, **kwargs)
    return old(file, *args, **kwargs)


def install():
    resource()
    ctypes()
    processes.install()
    builtins.open = io.open = open_stream
    time.process_time, time.process_time_ns = time.perf_counter, time.perf_counter_ns
    time.thread_time, time.thread_time_ns = time.perf_counter, time.perf_counter_ns
    for name in ("alarm", "setitimer", "siginterrupt"):
        setattr(signal, name, lambda *_: 0)
    signal.ITIMER_REAL = 0
    os.getppid, os.getuid, os.getlogin = (lambda: 1), (lambda: 1000), (lambda: "user")
    os.sched_getaffinity = lambda _: {0}
