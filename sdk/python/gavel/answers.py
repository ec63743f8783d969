"""Finds the answer in a response.

Every Gavel SDK has these four functions with the same results. `sdk/README.md`
in Gavel's repository specifies them.
"""

from __future__ import annotations

import re

__all__ = ["after_last", "last_boxed", "last_number", "last_tag"]

# Unicode's White_Space. `str.strip()` alone also removes U+001C to U+001F.
_WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)

_SIGN = r"(?<![A-Za-z0-9)\]}])[-\u2212]\$?"
_DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)"
_FRACTION = r"\.[0-9]+"
_NUMBER = re.compile(
    rf"(?:{_SIGN}(?:{_DIGITS}(?:{_FRACTION})?|{_FRACTION})"
    rf"|{_DIGITS}(?:{_FRACTION})?"
    rf"|(?<![A-Za-z0-9.]){_FRACTION})"
    r"(?:[eE][+-]?[0-9]+)?"
)


def last_number(text: str) -> float | None:
    """The last number of `text`: `"it costs $1,234.50"` gives `1234.5`.

    `None` if there is no number, or it is too large for a float.
    """
    last = None
    for last in _NUMBER.finditer(text):
        pass
    if last is None:
        return None
    number = float(last[0].replace(",", "").replace("$", "").replace("\u2212", "-"))
    return number if abs(number) != float("inf") else None


_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


def last_boxed(text: str) -> str | None:
    r"""The contents of the last complete `\boxed{…}` of `text`, trimmed."""
    found: tuple[int, int] | None = None
    # For each open brace, where its contents begin if it is a box.
    opened: list[int | None] = []
    for brace in _BRACE.finditer(text):
        if brace[0] == "{":
            opened.append(brace.end() if _follows_boxed(text, brace.start()) else None)
        elif brace[0] == "}" and opened:
            start = opened.pop()
            if start is not None and (found is None or start > found[0]):
                found = (start, brace.start())
    return None if found is None else text[found[0] : found[1]].strip(_WHITE_SPACE)


def _follows_boxed(text: str, end: int) -> bool:
    while end > 0 and text[end - 1] in _WHITE_SPACE:
        end -= 1
    return text.endswith("\\boxed", 0, end)


def last_tag(text: str, name: str) -> str | None:
    """The contents of the last complete `<name>…</name>` of `text`, trimmed."""
    if not name:
        return None
    opening, closing = f"<{name}>", f"</{name}>"
    start = text.rfind(opening, 0, max(text.rfind(closing), 0))
    if start < 0:
        return None
    start += len(opening)
    return text[start : text.find(closing, start)].strip(_WHITE_SPACE)


def after_last(text: str, prefix: str) -> str | None:
    """The text after the last `prefix` of `text` on its line, trimmed."""
    if not prefix:
        return None
    _, found, rest = text.rpartition(prefix)
    return rest.partition("\n")[0].strip(_WHITE_SPACE) if found else None
