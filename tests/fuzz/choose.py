#!/usr/bin/env python3
"""Copies to FOLDER the inputs that reach the most code: choose.py CONTROL FOLDER.

CONTROL is the file of libFuzzer's -merge_control_file: the inputs, and the
places in the code that each reaches. The next input is always the one that
reaches the most new places, until MOST are chosen or nothing is new."""

import re
import shutil
import sys
from pathlib import Path

MOST = 48

control, folder = sys.argv[1:]
lines = Path(control).read_text(errors="replace").splitlines()
known = int(lines[1])
files = lines[2 : 2 + int(lines[0])]
places = {}
for line in lines:
    if found := re.match(r"COV (\d+) ?(.*)", line):
        places[int(found[1])] = set(found[2].split())
reached = set().union(*(places.get(number, set()) for number in range(known)))
for _ in range(MOST):
    best = max(range(known, len(files)), default=None,
               key=lambda number: (len(places.get(number, set()) - reached), -Path(files[number]).stat().st_size))
    if best is None or not places.get(best, set()) - reached:
        break
    reached |= places[best]
    shutil.copy(files[best], folder)
