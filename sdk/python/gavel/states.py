"""What a plugin keeps between calls: bytes, which the host gives to the next call."""

from __future__ import annotations

from typing import Any


def _as_state(value: Any) -> bytes:
    """The bytes of a state; TypeError if it has none. A number would become as many zeros."""
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"the `state` is bytes, not {value!r:.80}")
    return bytes(value)
