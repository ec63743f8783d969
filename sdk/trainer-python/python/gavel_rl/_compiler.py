"""Compiles components in child processes, whose time and memory are limited."""

import sys

from gavel_rl import _native

# The child has no environment and no packages, so it loads the extension module by its path.
_CHILD = """
import importlib.util, os, sys
spec = importlib.util.spec_from_file_location("_native", sys.argv[1])
native = importlib.util.module_from_spec(spec)
spec.loader.exec_module(native)
os._exit(native.compile_component(sys.argv[-1]))
"""


def start_compilers_with_this_interpreter() -> None:
    """Starts this interpreter again for each component that is compiled.

    Python that is embedded in another program has no interpreter to start, and compiles in its own process.
    """
    if sys.executable and _native.__file__:
        _native.compile_with(sys.executable, ["-I", "-S", "-c", _CHILD, _native.__file__])
