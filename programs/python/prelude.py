"""The modules and names that solutions rely on. The component has only the
modules that are imported here, as there are no files at run time. The names are
those that graders of contests import in front of a solution."""

import importlib
import sys

import caching
import event_loop
import stand_ins
import threads
import wordsize

MODULES = """
abc argparse array ast base64 binascii bisect builtins calendar cmath codecs collections collections.abc
contextlib copy copyreg csv dataclasses datetime decimal difflib enum errno fileinput fractions functools gc getpass
graphlib hashlib heapq hmac html inspect io itertools json json.decoder json.encoder keyword linecache locale
logging math numbers operator os os.path pathlib pickle platform posixpath pprint queue random re reprlib
secrets shlex shutil signal statistics string stringprep struct sys tempfile textwrap threading time timeit
tokenize token traceback types typing unicodedata unittest urllib.parse uuid warnings weakref zlib zoneinfo
_strptime _pydecimal _pydatetime _pylong _ast_unparse asyncio concurrent.futures
encodings.ascii encodings.idna encodings.latin_1 encodings.utf_8 encodings.utf_16 encodings.unicode_escape
encodings.raw_unicode_escape bdb cmd code colorsys configparser contextvars cProfile dis doctest faulthandler fnmatch
gettext glob gzip html.parser ipaddress marshal optparse pdb profile pstats sched selectors socket sqlite3 stat subprocess symtable
tracemalloc urllib.request xml.etree.ElementTree
""".split()

for name in MODULES:
    importlib.import_module(name)
for each in (wordsize, caching, threads, event_loop, stand_ins):
    each.install()

# In the order of verl's prime_code, in which the last definition of a name counts.
STARS = """
string re datetime collections heapq bisect copy math random statistics itertools functools operator io json
builtins typing
""".split()
BARE = "string re datetime collections heapq bisect copy math random statistics itertools functools operator io sys json"


def names():
    found = {}
    for module in map(sys.modules.get, STARS):
        public = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
        found.update((name, getattr(module, name)) for name in public)
    found.update((name, sys.modules[name]) for name in BARE.split())
    return found


# The names that Python itself gives to all code.
BUILTINS = frozenset(vars(sys.modules["builtins"]))
# Added to Python's own names: in the module they would count as names that the code defines.
vars(sys.modules["builtins"]).update(names())
