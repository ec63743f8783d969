"""What shows that this interpreter, and not the code, is at the end of its means: it has 32 bits and one thread. The
job can then be repeated in another way.

Exceptions are watched where they are raised, as code may catch them."""

import dis
import json
import sys

EVENTS = sys.monitoring.events
TOOL = 4
# What C says of a whole number that a Python of 64 bits takes.
NARROW = {
    "Python int too large to convert to C ssize_t",
    "Python int too large to convert to C long",
    "Python int too large to convert to C unsigned long",
    "Python int too large to convert to C size_t",
    "cannot fit 'int' into an index-sized integer",
}
ISLICE = "must be None or an integer: 0 <= x <= sys.maxsize."
RAISE = dis.opmap["RAISE_VARARGS"]
MULTIPLY = dis.opmap["BINARY_OP"]
CACHE = dis.opmap["CACHE"]
# The exception's traceback is freed on the stack of C, which has room for so many of its entries at least.
DEEP = 1000
# What C says where its stack ends, here after about 1 MiB. A recursion that exceeds the limit of Python has another text.
OVERFLOW = "Stack overflow"
HERE = __file__.rpartition("/")[0] + "/"


class Signs:
    def __init__(self):
        self.found, self.depth, self.has_escaped = {}, 0, False
        self.error = self.overflow = None

    def add(self, kind, why):
        """Notes that the job should be repeated in the way `kind`."""
        self.found.setdefault(kind, why)

    def watch(self):
        sys.monitoring.use_tool_id(TOOL, "signs")
        sys.monitoring.register_callback(TOOL, EVENTS.RAISE, self.raised)
        sys.monitoring.register_callback(TOOL, EVENTS.EXCEPTION_HANDLED, self.handled)
        sys.monitoring.set_events(TOOL, EVENTS.RAISE)

    def raised(self, code, offset, error):
        """An exception in a frame: in the innermost first, then in those that called it."""
        trace = error.__traceback__
        if trace is not None and trace.tb_next is not None:
            self.depth += 1
            if self.depth > DEEP:
                # From here on it only matters where it is handled.
                sys.monitoring.set_events(TOOL, EVENTS.EXCEPTION_HANDLED)
            return
        self.depth = 1
        kind = type(error)
        if kind is RecursionError and instruction(code, offset) != RAISE:
            self.overflow = error
        if kind is OverflowError and str(error) in NARROW or kind is ValueError and str(error).endswith(ISLICE):
            # C raised it: not the code, nor a module of this folder, which knows what to do then. A sequence that is
            # repeated too often has no room in 64 bits either.
            if instruction(code, offset) not in (RAISE, MULTIPLY) and not code.co_filename.startswith(HERE):
                self.add("wide", f"{kind.__name__}: {error}")
                self.error = error

    def handled(self, code, offset, error):
        self.depth = 0
        cut(error)
        sys.monitoring.set_events(TOOL, EVENTS.RAISE)

    def escaped(self, error):
        """Notes an exception that the code did not catch."""
        self.has_escaped |= error is self.error
        if type(error) is RecursionError and str(error).startswith(OVERFLOW) and error is self.overflow:
            self.add("stack", f"RecursionError: {error}")

    def report(self, ways):
        """The last line on stderr, which asks for the job to be repeated. In a job that was repeated so, a number that
        still is too large counts only if it ended the code."""
        if "wide" in ways and not self.has_escaped:
            self.found.pop("wide", None)
        if self.found:
            sys.__stderr__.write("\n" + json.dumps({"repeat": self.found}) + "\n")


def instruction(code, offset):
    """The instruction that raised: `offset` may be that of the last of its caches."""
    while offset > 0 and code.co_code[offset] == CACHE:
        offset -= 2
    return code.co_code[offset]


def cut(error):
    """Frees all but the first entries of a traceback, from its end: else each would free the next one, one within the
    other."""
    entries, entry = [], error.__traceback__
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    while len(entries) > 1:
        entries.pop()
        entries[-1].tb_next = None


SIGNS = Signs()
