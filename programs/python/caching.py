"""`functools.lru_cache` in Python. The cache in C puts each call of a recursion on the stack of C, where some hundred
have room; calls from Python to Python need none of it. A call of the cache takes about twice as long as in C."""

import collections
import functools
import sys

# The key of a call is made of the arguments that are passed, as in C: defaults are not part of it. An `int` or a `str`
# is the key itself where it is the only argument: 1 and 1.0 are two keys then, and so are a text and an equal one of
# another class. A key without a hash is an error in the words of C, which differ from those of a dictionary.
SOURCE = """
def make(function, cache, most, info, missing, make_key):
    hits = misses = 0
    bare = int, str
    get, use = cache.get, getattr(cache, "move_to_end", None)

    def cached(*args, **kwargs):
        nonlocal hits, misses
        {key}
        try:
            value = get(key, missing)
        except TypeError:
            hash(key)
            raise
        if value is not missing:
            hits += 1
            {use}
            return value
        misses += 1
        value = function(*args, **kwargs)
        {keep}
        return value

    def cache_info():
        return info(hits, misses, most, len(cache))

    def cache_clear():
        nonlocal hits, misses
        hits = misses = 0
        cache.clear()

    cached.cache_info, cached.cache_clear = cache_info, cache_clear
    return cached
"""
TYPED = "key = make_key(args, kwargs, True)"
UNTYPED = """if kwargs:
            key = make_key(args, kwargs, False)
        elif len(args) == 1 and type(args[0]) in bare:
            key = args[0]
        else:
            key = args"""
# The function may have called itself with the same arguments.
BOUNDED = """if key not in cache:
            if len(cache) >= most:
                cache.popitem(False)
            cache[key] = value"""
MOST_LIMIT = 2**31 - 1


def install():
    functools._lru_cache_wrapper = wrapper
    sys.setrecursionlimit, sys.getrecursionlimit = limits(sys.setrecursionlimit, sys.getrecursionlimit())


def wrapper(function, maxsize, typed, info):
    if maxsize == 0:
        return uncached(function, info)
    made = maker(bool(typed), maxsize is not None)
    cache = {} if maxsize is None else collections.OrderedDict()
    return made(function, cache, maxsize, info, object(), functools._make_key)


@functools.cache
def maker(typed, bounded):
    # The builtins, even if the code has names of its own for them.
    names = {"__builtins__": {each.__name__: each for each in (TypeError, getattr, hash, int, len, str, type)}}
    use, keep = ("use(key)", BOUNDED) if bounded else ("pass", "cache[key] = value")
    exec(SOURCE.format(key=TYPED if typed else UNTYPED, use=use, keep=keep), names)
    return names["make"]


def uncached(function, info):
    """A cache without room, which counts calls and looks at no key."""
    misses = 0

    def cached(*args, **kwargs):
        nonlocal misses
        misses += 1
        return function(*args, **kwargs)

    def cache_info():
        return info(0, misses, 0, 0)

    def cache_clear():
        nonlocal misses
        misses = 0

    cached.cache_info, cached.cache_clear = cache_info, cache_clear
    return cached


def limits(change, limit):
    """The recursion limit in calls: a cached call has two frames here, and one in CPython."""

    def setrecursionlimit(limit_of_calls, /):
        nonlocal limit
        is_usual = type(limit_of_calls) is int and 0 < limit_of_calls <= MOST_LIMIT
        change(min(2 * limit_of_calls, MOST_LIMIT) if is_usual else limit_of_calls)
        limit = limit_of_calls

    def getrecursionlimit():
        return limit

    return setrecursionlimit, getrecursionlimit
