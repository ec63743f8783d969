"""Slower forms of what takes numbers of at most 32 bits here. A job gets them when it is repeated, after it has shown
that it needs them."""

import ast
import bisect
import builtins
import collections
import itertools
import operator

from wordsize import MAX, NARROW, length

# Methods that take an index, a number of times or a size. Those of Python's own types cannot be replaced, but their calls
# can. Of a size that is too large there is not enough memory, as with 64 bits.
METHODS = frozenset("split rsplit replace insert pop rotate sub subn center ljust rjust zfill expandtabs to_bytes".split())
TYPES = frozenset(("bytes", "bytearray"))


def install(names):
    """`names` gives the names of modules that count as Python's own."""
    builtins.len = length
    bisect.bisect_left = either(bisect.bisect_left, bisect_left)
    bisect.bisect_right = bisect.bisect = either(bisect.bisect_right, bisect_right)
    bisect.insort_left = either(bisect.insort_left, insort_left)
    bisect.insort_right = bisect.insort = either(bisect.insort_right, insort_right)
    for name in ("islice", "repeat", "combinations", "permutations", "combinations_with_replacement"):
        setattr(itertools, name, clipped(getattr(itertools, name)))
    collections.deque = deque
    vars(builtins).update(names())
    builtins.__wide_call__ = clipped_call


def narrow(value):
    return max(-NARROW - 1, min(value, NARROW)) if type(value) is int and -MAX - 1 <= value <= MAX else value


def clipped_call(function, *args, **kwargs):
    """Calls a function of C. No text or list has more than 2**31 - 1 elements, so that a larger index or number of times
    is as good as that."""
    try:
        return function(*args, **kwargs)
    except (OverflowError, ValueError):
        if hasattr(function, "__code__") and function.__module__ != "re":
            raise
        least = [narrow(each) for each in args]
        words = {name: narrow(each) for name, each in kwargs.items()}
        if least == list(args) and words == kwargs:
            raise
    return function(*least, **words)


def clipped(function):
    def wide(*args, **kwargs):
        return clipped_call(function, *args, **kwargs)

    return wide


class Calls(ast.NodeTransformer):
    """Calls of these methods and types go through `clipped_call`."""

    def visit_Call(self, node):
        self.generic_visit(node)
        is_one = isinstance(node.func, ast.Attribute) and node.func.attr in METHODS
        is_one = is_one or isinstance(node.func, ast.Name) and node.func.id in TYPES
        if is_one and (node.args or node.keywords):
            name = ast.copy_location(ast.Name("__wide_call__", ast.Load()), node.func)
            return ast.copy_location(ast.Call(name, [node.func, *node.args], node.keywords), node)
        return node


def rewritten(tree):
    return ast.fix_missing_locations(Calls().visit(tree))


class Deques(type):
    def __instancecheck__(cls, value):
        return isinstance(value, _deque)


_deque = collections.deque


class deque(_deque, metaclass=Deques):
    __doc__ = _deque.__doc__

    def __init__(self, iterable=(), maxlen=None):
        if isinstance(maxlen, int) and NARROW < maxlen <= MAX:
            self.most = maxlen
            maxlen = NARROW
        super().__init__(iterable, maxlen)

    @property
    def maxlen(self):
        return getattr(self, "most", _deque.maxlen.__get__(self))

    def rotate(self, n=1):
        n = operator.index(n)
        super().rotate(n % len(self) if self and -MAX - 1 <= n <= MAX else n)

    def __repr__(self):
        known = "" if self.maxlen is None else f", maxlen={self.maxlen}"
        return f"deque({list(self)!r}{known})"


# bisect, as Lib/bisect.py has it.

def either(narrow, wide):
    """The function of C, and the one below only where that fails."""

    def search(a, x, lo=0, hi=None, *, key=None):
        most = length(a) if hi is None else hi
        return narrow(a, x, lo, hi, key=key) if lo <= NARROW and most <= NARROW else wide(a, x, lo, hi, key)

    return search


def bisect_left(a, x, lo, hi, key):
    return first(lambda each: not each < x, a, lo, hi, key)


def bisect_right(a, x, lo, hi, key):
    return first(lambda each: x < each, a, lo, hi, key)


def first(is_after, a, lo, hi, key):
    if lo < 0:
        raise ValueError("lo must be non-negative")
    hi = length(a) if hi is None else hi
    while lo < hi:
        middle = (lo + hi) // 2
        each = a[middle] if key is None else key(a[middle])
        if is_after(each):
            hi = middle
        else:
            lo = middle + 1
    return lo


def insort_left(a, x, lo, hi, key):
    a.insert(bisect_left(a, x if key is None else key(x), lo, hi, key), x)


def insort_right(a, x, lo, hi, key):
    a.insert(bisect_right(a, x if key is None else key(x), lo, hi, key), x)
