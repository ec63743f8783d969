"""The output of the code, within a number of characters."""

from __future__ import annotations

import io


class Output(io.TextIOBase):
    """A stream that keeps the beginning and the end of what is written to it."""

    def __init__(self, chars: int) -> None:
        self._half = chars // 2
        self._begin()

    def _begin(self) -> None:
        self._head = io.StringIO()
        self._room = self._half
        # Texts after the head; the last of them are its tail.
        self._tail: list[str] = []
        self._in_tail = 0
        self._left_out = 0

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        kept = text[: self._room]
        self._head.write(kept)
        self._room -= len(kept)
        if rest := text[len(kept) :]:
            self._tail.append(rest)
            self._in_tail += len(rest)
            if self._in_tail > 4 * self._half:
                self._shorten()
        return len(text)

    def _shorten(self) -> None:
        tail = "".join(self._tail)
        kept = tail[-self._half :]
        self._left_out += len(tail) - len(kept)
        self._tail, self._in_tail = [kept], len(kept)

    def ends_line(self) -> bool:
        """Whether the next text begins a line."""
        text = self._tail[-1] if self._tail else self._head.getvalue()
        return not text or text.endswith("\n")

    def take(self) -> str:
        """The text since the last call of this, in a form that can be encoded."""
        if self._in_tail > self._half:
            self._shorten()
        left_out = f"\n[{self._left_out} characters left out]\n" if self._left_out else ""
        text = self._head.getvalue() + left_out + "".join(self._tail)
        self._begin()
        return text.rstrip("\n").encode("utf-8", "backslashreplace").decode()
