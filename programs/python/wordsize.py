"""What programs see of a 64-bit Python. The interpreter has pointers of 32 bits, as WebAssembly has; contests and their
graders have 64. What would be slower is in wide.py."""

import array as array_module
import ast
import copyreg
import functools
import math
import operator
import random
import struct as struct_module
import sys

MAX = 2**63 - 1
NARROW = 2**31 - 1


def install():
    sys.maxsize = MAX
    sys.hash_info = type(sys.hash_info)((64, MODULUS, 314159, 0, 1000003, "siphash13", 64, 128, 0))
    sys.int_info = type(sys.int_info)((30, 4, *sys.int_info[2:]))
    random.len = length
    random.Random.seed = seed
    random.seed = random._inst.seed
    array_module.array = array_module.ArrayType = array
    copyreg.pickle(_array, lambda values: (array, (values.typecode, values.tolist())))
    for name in ("pack", "pack_into", "unpack", "unpack_from", "iter_unpack", "calcsize"):
        setattr(struct_module, name, native(getattr(struct_module, name)))
    struct_module.Struct = Struct


def length(value, /, narrow=len):
    """`len`, up to 2**63 - 1."""
    try:
        return narrow(value)
    except OverflowError:
        pass
    if type(value) is range:
        size = max(0, -((value.start - value.stop) // value.step))
    else:
        size = operator.index(type(value).__len__(value))
    if size > MAX:
        raise OverflowError("Python int too large to convert to C ssize_t")
    return size


def seed(self, a=None, version=2, narrow=random.Random.seed):
    """Python seeds with the hash of a fraction."""
    narrow(self, abs(wide_hash(a)) if isinstance(a, float) else a, version)


# array and struct: C's long, size_t and pointers.

NATIVE = {"l": "q", "L": "Q", "n": "q", "N": "Q", "P": "Q"}
_array = array_module.array


class Arrays(type):
    """Other arrays are instances of `array` too."""

    def __instancecheck__(cls, value):
        return isinstance(value, _array)

    def __subclasscheck__(cls, other):
        return issubclass(other, _array)


class array(_array, metaclass=Arrays):
    __doc__, __module__ = _array.__doc__, "array"

    def __new__(cls, typecode, *values):
        wide = NATIVE[typecode] if typecode in ("l", "L") else typecode
        if cls is array and wide == typecode:
            return _array(typecode, *values)
        made = _array.__new__(cls, wide, *values)
        made.code = typecode
        return made

    typecode = property(lambda self: self.code)

    def __reduce_ex__(self, protocol):
        return array, (self.code, self.tolist())

    def __add__(self, other):
        return array(self.code, _array.__add__(self, other))

    def __mul__(self, times):
        return array(self.code, _array.__mul__(self, times))

    __rmul__ = __mul__

    def __repr__(self):
        values = f", {self.tolist()}" if self else ""
        return f"array({self.code!r}{values})"


@functools.lru_cache(100)
def spelled(format):
    """A format in which long has 64 bits. Their alignment is 8 bytes here too."""
    text = format.decode("latin-1") if isinstance(format, (bytes, bytearray)) else format
    if not isinstance(text, str) or text[:1] in tuple("<>=!"):
        return format
    return "".join(NATIVE.get(each, each) for each in text)


def native(function):
    def wide(format, /, *args, **kwargs):
        return function(spelled(format), *args, **kwargs)

    return functools.wraps(function)(wide)


class Struct(struct_module.Struct):
    def __new__(cls, format="", *args, **kwargs):
        return super().__new__(cls, spelled(format))

    def __init__(self, format):
        super().__init__(spelled(format))
        self.written = format

    format = property(lambda self: self.written)


# hash

MODULUS = 2**61 - 1
XX = 11400714785074694791, 14029467366897019727, 2870177450012600261
MASK = 2**64 - 1


def asks_hash(tree):
    """Whether a program asks for hashes, beside those of its own objects."""
    if isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef)) and tree.name == "__hash__":
        return False
    if isinstance(tree, ast.Name) and tree.id == "hash":
        return isinstance(tree.ctx, ast.Load)
    return any(asks_hash(child) for child in ast.iter_child_nodes(tree))


def wide_hash(value, narrow=hash):
    """`hash`; the hash of a text is random in Python, and any is right."""
    kind = type(value)
    if kind is int or kind is bool:
        return of_ratio(value, 1)
    if kind is tuple:
        return of_tuple(value)
    if kind is frozenset:
        return of_set(value)
    if isinstance(value, (float, complex)) and kind.__hash__ in (float.__hash__, complex.__hash__):
        if isinstance(value, complex):
            return signed(wide_hash(value.real) + 1000003 * wide_hash(value.imag))
        if math.isfinite(value):
            return of_ratio(*value.as_integer_ratio())
        return narrow(value) if math.isnan(value) else int(math.copysign(314159, value))
    if value is None:
        return 0xFCA86420
    found = narrow(value)
    own = kind.__hash__
    if own is int.__hash__:
        return of_ratio(int(value), 1)
    if kind.__module__ in ("decimal", "fractions") and kind.__name__ in ("Decimal", "Fraction"):
        return of_ratio(*value.as_integer_ratio()) if math.isfinite(value) else found
    if hasattr(own, "__code__"):
        # A method in Python: the interpreter cut its result.
        found = own(value)
        return found if -MAX - 1 <= found <= MAX and found != -1 else of_ratio(found, 1)
    return found


def of_ratio(numerator, denominator):
    bottom = denominator % MODULUS
    found = abs(numerator) % MODULUS * pow(bottom, -1, MODULUS) % MODULUS if bottom else 314159
    found = found if numerator >= 0 else -found
    return -2 if found == -1 else found


def of_tuple(value):
    """xxHash, as in CPython's tupleobject.c."""
    found = XX[2]
    for each in value:
        found = found + (wide_hash(each) & MASK) * XX[1] & MASK
        found = (found << 31 | found >> 33) * XX[0] & MASK
    found = found + (len(value) ^ XX[2] ^ 3527539) & MASK
    return 1546275796 if found == MASK else signed(found)


def of_set(value):
    """As in CPython's setobject.c."""
    found = 0
    for each in value:
        one = wide_hash(each) & MASK
        found ^= ((one ^ 89869747) ^ (one << 16 & MASK)) * 3644798167 & MASK
    found ^= (len(value) + 1) * 1927868237 & MASK
    found ^= (found >> 11) ^ (found >> 25)
    found = found * 69069 + 907133923 & MASK
    return 590923713 if found == MASK else signed(found)


def signed(found):
    found &= MASK
    found -= 2**64 if found >> 63 else 0
    return -2 if found == -1 else found
