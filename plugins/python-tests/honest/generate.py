"""Writes the cases of honest code (programs, idioms, library and functions .jsonl) from the Python files beside it. The
expected outputs are those of the Python that runs this: CPython 3.13 or later, of 64 bits.

    python3.13 generate.py
"""

import itertools
import json
import pathlib
import subprocess
import sys

from algorithms import ALGORITHMS
from functions import FUNCTIONS
from idioms import PROGRAMS as IDIOMS
from library import PROGRAMS as LIBRARY

# How programs read rows of whole numbers, and how they run `solve` and print its lines.
FORMS = {
    "input()": "{code}\nn = {count}\nrows = [list(map(int, input().split())) for _ in range(n)]\nfor line in solve(rows):\n    print(line)\n",
    "sys.stdin.readline": "import sys\ninput = sys.stdin.readline\n{code}\ndef main():\n    rows = []\n    for _ in range({count}):\n        rows.append([int(x) for x in input().split()])\n    print(*solve(rows), sep='\\n')\n\nif __name__ == '__main__':\n    main()\n",
    "sys.stdin.read": "import sys\n{code}\nrows = [list(map(int, line.split())) for line in sys.stdin.read().splitlines()]\nsys.stdout.write('\\n'.join(map(str, solve(rows))) + '\\n')\n",
    "for line in sys.stdin": "import sys\n{code}\nrows = []\nfor line in sys.stdin:\n    if line.strip():\n        rows.append(list(map(int, line.split())))\nfor line in solve(rows):\n    print(line, flush=True)\n",
    "open(0)": "{code}\nrows = [[*map(int, line.split())] for line in open(0)]\nprint('\\n'.join(str(line) for line in solve(rows)), end='')\n",
    "a thread with a large stack": "import sys, threading\nsys.setrecursionlimit(10**7)\nthreading.stack_size(2**27)\n{code}\ndef main():\n    rows = [list(map(int, sys.stdin.readline().split())) for _ in range({count})]\n    for line in solve(rows): print(line)\n\nt = threading.Thread(target=main)\nt.start()\nt.join()\n",
    "sys.stdin.buffer": "import sys\n{code}\nrows = [list(map(int, line.split())) for line in sys.stdin.buffer.readlines()]\nout = []\nfor line in solve(rows): out.append(str(line))\nsys.stdout.buffer.write('\\n'.join(out).encode())\n",
    "fileinput": "import fileinput\n{code}\nprint(*solve([list(map(int, line.split())) for line in fileinput.input()]), sep='\\n')\n",
    "os.read": "import io, os\n{code}\ndata = io.BytesIO(os.read(0, 1 << 20))\nrows = [list(map(int, line.split())) for line in iter(data.readline, b'')]\nos.write(1, ('\\n'.join(map(str, solve(rows))) + '\\n').encode())\n",
    "iter(input)": "import sys\n{code}\nrows = [list(map(int, line.split())) for line in iter(sys.stdin.readline, '')]\nprint(*map(str, solve(rows)), sep='\\n', file=sys.stdout)\nsys.exit(0)\n",
    "an event loop": "import asyncio, sys\n{code}\nasync def main():\n    rows = [list(map(int, line.split())) for line in sys.stdin]\n    await asyncio.sleep(0)\n    for line in await asyncio.to_thread(solve, rows): print(line)\n\nasyncio.run(main())\n",
    "input() until its end": "import contextlib, io\n{code}\nrows = []\ntry:\n    while True: rows.append([int(x) for x in input().split()])\nexcept EOFError:\n    pass\nwith contextlib.redirect_stdout(io.StringIO()) as text:\n    for line in solve(rows): print(line)\nprint(text.getvalue(), end='')\n",
}
FORMS_EACH = 3

# What honest code has on a busy machine.
CPU = {"cpu_ms": 60000}


def cpython(code, stdin):
    ran = subprocess.run([sys.executable, "-c", code], input=stdin, capture_output=True, text=True, timeout=100)
    assert ran.returncode == 0, f"{code}\n{ran.stderr}"
    return ran.stdout


def case(name, code, truth):
    response = f"```python\n{code}```"
    truth = json.dumps(truth)
    return {"case": name, "response": response, "ground_truth": truth, "params": CPU, "expect": {"score": 1.0}}


def of_algorithms():
    forms = itertools.cycle(FORMS.items())
    for name, (code, rows) in ALGORITHMS.items():
        stdin = "".join(" ".join(map(str, row)) + "\n" for row in rows)
        for form, text in itertools.islice(forms, FORMS_EACH):
            whole = text.replace("{code}", code).replace("{count}", str(len(rows)))
            yield case(f"{name}, {form}", whole, {"inputs": [stdin], "outputs": [cpython(whole, stdin)]})
        # Each algorithm begins with another form.
        next(forms)


def of_programs(programs):
    for name, code, stdin in programs:
        yield case(name, code, {"inputs": [stdin], "outputs": [cpython(code, stdin)]})


# What a grader imports in front of a solution of LeetCode.
PRELUDE = """
import json, sys, bisect, collections, functools, heapq, itertools, math, random, re, string
from typing import *
from collections import *
from functools import *
from heapq import *
from itertools import *
from bisect import *
from math import *
import bisect
sys.setrecursionlimit(600000)
"""


def of_functions():
    for name, code, function, calls in FUNCTIONS:
        find = f"(Solution().{function} if 'Solution' in globals() else {function})"
        last = f"print('\\n' + json.dumps([{find}(*each) for each in json.loads(sys.argv[1])]))"
        ran = subprocess.run(
            [sys.executable, "-c", f"{PRELUDE}\n{code}\n{last}", json.dumps(calls)], capture_output=True, text=True, timeout=100
        )
        assert ran.returncode == 0, f"{code}\n{ran.stderr}"
        outputs = json.loads(ran.stdout.splitlines()[-1])
        yield case(name, code, {"inputs": calls, "outputs": outputs, "fn_name": function})


FILES = {
    "programs": of_algorithms(),
    "idioms": of_programs(IDIOMS),
    "library": of_programs(LIBRARY),
    "functions": of_functions(),
}
for file, cases in FILES.items():
    lines = [json.dumps(each, ensure_ascii=False) + "\n" for each in cases]
    pathlib.Path(__file__).with_name(f"{file}.jsonl").write_text("".join(lines))
    print(f"{file}: {len(lines)} cases")
