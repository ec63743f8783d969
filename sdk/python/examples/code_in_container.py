"""A service that runs code in languages without a component, C first of all, in containers: each case in one of its
own, without a network, with limits. The expected outputs stay here.

    PYTHONPATH=sdk/python python -m gavel.service sdk/python/examples/code_in_container.py:score --threads 4

`threads` is the number of containers at once.
"""

from __future__ import annotations

import json
import re
import subprocess
import uuid
from dataclasses import dataclass

from gavel import InvalidInput, Reference, Sample, Score, Unavailable


@dataclass(frozen=True)
class Language:
    image: str
    file: str
    compile: str
    """Makes /tmp/main of the file in /tmp. It has no single quote."""
    fences: tuple[str, ...]


LANGUAGES = {
    "c": Language("gcc:15", "main.c", "gcc -O2 -std=c17 -o /tmp/main /tmp/main.c -lm", ("c",)),
    "cpp": Language("gcc:15", "main.cpp", "g++ -O2 -std=c++20 -o /tmp/main /tmp/main.cpp", ("cpp", "c++", "cc")),
    "rust": Language("rust:1-slim", "main.rs", "rustc -O -o /tmp/main /tmp/main.rs", ("rust", "rs")),
    "go": Language("golang:1", "main.go", "GOCACHE=/tmp/go go build -o /tmp/main /tmp/main.go", ("go", "golang")),
}

SECONDS = 10
"""Of the code, in each case."""
COMPILE_SECONDS = 30
START_SECONDS = 60
"""The most that a container takes to start and to end."""
MOST_TESTS = 10
MOST_OUTPUT = 1 << 20

LIMITS = [
    "--network=none", "--memory=1g", "--memory-swap=1g", "--cpus=1", "--pids-limit=128", "--read-only",
    "--tmpfs=/tmp:rw,exec,size=512m", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--user=65534:65534",
]

# The first bytes of stdin are the code, as many as the first argument says; the rest is the program's input. The first
# line of stderr is READY: what happens after it is the code's doing, whatever the status is. What did not compile exits
# with 99, and what ran out of time or memory with 137. The output is in a file, as a process that outlives the program
# would keep a pipe open.
READY = "the container runs"
SCRIPT = f"""echo '{READY}' >&2
head -c "$0" >"/tmp/$1" || exit 1
timeout -s KILL %d bash -c '%s' >&2 || exit 99
( ulimit -f %d; exec timeout -s KILL %d /tmp/main >/tmp/output 2>/dev/null )
status=$?
head -c %d /tmp/output
[[ $status != 99 ]] || exit 1
exit $status"""


def score(sample: Sample, reference: Reference) -> Score:
    language = LANGUAGES.get(reference.get("language") or "c")
    if language is None:
        raise InvalidInput(f"the column `language` has none of {', '.join(LANGUAGES)}")
    cases = _cases(reference.require_ground_truth())
    code = _code(sample.response, language)
    passed, note = 0, None
    for number, (given, expected) in enumerate(cases, 1):
        printed, why = _run(language, code, given)
        if why is None and printed.split() == expected.split():
            passed += 1
        else:
            note = note or f"case {number}: {why or 'another output'}"
    return Score(passed / len(cases), metrics={"passed": passed, "total": len(cases)}, note=note)


def _cases(truth: str) -> list[tuple[str, str]]:
    """The inputs and outputs of the row: a mistake in them is no fault of the response."""
    try:
        tests = json.loads(truth)
        cases = list(zip(map(str, tests["inputs"]), map(str, tests["outputs"]), strict=True))[:MOST_TESTS]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f'the ground truth is not {{"inputs": […], "outputs": […]}}: {error}') from None
    if not any(expected.strip() for _, expected in cases):
        raise InvalidInput("no output of the ground truth has a word: code that does nothing would pass")
    return cases


def _code(response: str, language: Language) -> str:
    """The last block that is fenced in the language, or without one; else the whole response."""
    blocks = re.findall(r"^```[ \t]*([^\s`]*)[^\n]*\n(.*?)(?:^```|\Z)", response, re.M | re.S)
    named = [code for word, code in blocks if word.lower() in language.fences]
    return (named or [code for word, code in blocks if word == ""] or [response])[-1]


def _run(language: Language, code: str, given: str) -> tuple[str, str | None]:
    """The output of the code in a container of its own, and why it failed."""
    source = code.encode()
    script = SCRIPT % (COMPILE_SECONDS, language.compile, MOST_OUTPUT // 1024, SECONDS, MOST_OUTPUT)
    inside = ["bash", "-c", script, str(len(source)), language.file]
    name = f"gavel-{uuid.uuid4().hex}"
    command = ["docker", "run", "--rm", "--interactive", f"--name={name}", *LIMITS, language.image, *inside]
    seconds = START_SECONDS + COMPILE_SECONDS + SECONDS
    try:
        ran = subprocess.run(command, input=source + given.encode(), capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired as expired:
        _kill(name)
        if _is_ready(expired.stderr):
            return "", "its container did not end"
        raise Unavailable("a container did not start in time") from None
    if not _is_ready(ran.stderr):
        words = ran.stderr.decode(errors="replace").strip().splitlines()
        raise Unavailable(f"the container does not run: {words[-1] if words else ran.returncode}")
    whys = {0: None, 99: "it does not compile", 137: "it ran out of time or memory"}
    why = whys.get(ran.returncode, f"it ended with the status {ran.returncode}")
    return ran.stdout.decode(errors="replace"), why


def _is_ready(stderr: bytes | None) -> bool:
    """Whether the container ran: the code cannot take the line away."""
    return READY.encode() in (stderr or b"").splitlines()


def _kill(name: str) -> None:
    """Ends the container, which would run on without its client."""
    try:
        subprocess.run(["docker", "kill", name], capture_output=True, timeout=START_SECONDS)
    except subprocess.TimeoutExpired:
        pass
