"""The contract's types, as componentize-py made them for this component."""

try:
    from gavel_world.imports import types
except ImportError:
    # Its name where `wasi:http` has an interface `types` too.
    from gavel_world.imports import gavel_plugin_types as types

__all__ = ["types"]
