"""The modules of Python's library that code may import: those that are imported here, as there are no files when the
component runs."""

from __future__ import annotations

import contextlib
import importlib
import sys

MODULES = """
abc array ast base64 binascii bisect builtins calendar cmath codecs collections collections.abc
concurrent.futures concurrent.futures.thread contextlib contextvars copy csv dataclasses datetime decimal difflib dis doctest enum errno
fractions functools gc graphlib hashlib heapq hmac html html.parser inspect io itertools json
json.decoder json.encoder keyword linecache locale logging math numbers operator os os.path pathlib pickle platform
pprint queue random re reprlib secrets shlex signal statistics string stringprep struct sys textwrap
threading time timeit token tokenize traceback types typing unicodedata unittest urllib.parse uuid
warnings weakref xml.etree.ElementTree zlib zoneinfo
_strptime _pydecimal _pydatetime _pylong _ast_unparse
encodings.ascii encodings.idna encodings.latin_1 encodings.utf_8 encodings.utf_16 encodings.unicode_escape
encodings.raw_unicode_escape
""".split()

for name in MODULES:
    with contextlib.suppress(ImportError):
        importlib.import_module(name)


def allow_long_numbers() -> None:
    """Lets numbers of any length become text."""
    sys.set_int_max_str_digits(0)
