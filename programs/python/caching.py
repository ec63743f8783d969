"""`functools.lru_cache` in Python. The cache in C puts each call of a recursion on the stack of C, where some hundred
have room; calls from Python to Python need none of it. It is as fast here."""

import collections
import functools
import inspect
import types

# The cached function has the arguments of the function, so that they need not be packed and unpacked.
SOURCE = """
def make(_user, _cache, _most, _info, _missing):
    _hits = _misses = 0
    _get, _move = _cache.get, getattr(_cache, "move_to_end", None)

    def wrapper({parameters}):
        nonlocal _hits, _misses
        _key = {key}
        _value = _get(_key, _missing)
        if _value is not _missing:
            _hits += 1
            {used}
            return _value
        _misses += 1
        _value = _user({parameters})
        {room}
        _cache[_key] = _value
        return _value

    def cache_info():
        return _info(_hits, _misses, _most, len(_cache))

    def cache_clear():
        nonlocal _hits, _misses
        _hits = _misses = 0
        _cache.clear()

    wrapper.cache_info, wrapper.cache_clear = cache_info, cache_clear
    return wrapper
"""
ROOM = """if _most == 0:
            return _value
        if len(_cache) >= _most and _key not in _cache:
            _cache.popitem(False)"""
NAMES = frozenset("_user _cache _most _info _missing _hits _misses _get _move _key _value _make_key".split())


def install():
    functools._lru_cache_wrapper = wrapper


def wrapper(function, maxsize, typed, info):
    names = parameters(function)
    if typed or names is None:
        made = maker("*args, **kwargs", f"_make_key(args, kwargs, {bool(typed)})", maxsize is not None)
    elif len(names) == 1:
        # 1 and 1.0 are two keys where they are the only argument.
        made = maker(names[0], f"{names[0]} if type({names[0]}) is int else ({names[0]},)", maxsize is not None)
    else:
        made = maker(", ".join(names), f"({', '.join(names)})", maxsize is not None)
    cache = {} if maxsize is None else collections.OrderedDict()
    cached = made(function, cache, maxsize, info, object())
    if names:
        cached.__defaults__ = function.__defaults__
    return cached


def parameters(function):
    """The names of a function's parameters, if they are all it takes."""
    if not isinstance(function, types.FunctionType):
        return None
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    if code.co_kwonlyargcount or code.co_posonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return None
    return names if NAMES.isdisjoint(names) and "type" not in names else None


@functools.cache
def maker(parameters, key, bounded):
    names = {"_make_key": functools._make_key, "type": type, "len": len}
    used, room = ("_move(_key)", ROOM) if bounded else ("pass", "pass")
    exec(SOURCE.format(parameters=parameters, key=key, used=used, room=room), names)
    return names["make"]
