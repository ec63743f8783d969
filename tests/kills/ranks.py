"""Runs of several ranks, of which one at a time is killed or stopped."""
import os
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from runs import Place, checkpoints, free_port

# Seconds in which the other ranks end, and a rank that runs again after it was stopped. 11 are promised, and two cores are
# busy.
BOUND = 40
# Seconds in which the processes of a rank are gone after it.
CHILDREN = 10
# A pause that changes nothing.
PAUSE = 5.0
WAYS = "kill", "stop", "pause"


class Rank(NamedTuple):
    process: subprocess.Popen
    log: Path

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def error(self) -> str:
        """The error that it ended with."""
        found = re.search(r"^error: .*", self.said(), re.M | re.S)
        return found[0].strip() if found else self.said()[-500:]

    def end(self, within: float) -> int | None:
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            return None


class Found(NamedTuple):
    """How often a run was killed or stopped, how often it began anew, the longest time until the others ended, and what was
    wrong."""

    events: int
    new: int
    longest: float
    wrong: list[str]


def start(place: Place, name: str, resume: bool, size: int, attempt: int) -> list[Rank]:
    port, ranks = free_port(), []
    own = place.command(name, resume, "resources.torch_threads=1", "resources.plugin_threads=1")
    for rank in range(size):
        numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "MASTER_PORT": port}
        variables = {**os.environ, **{key: str(value) for key, value in numbers.items()}, "MASTER_ADDR": "127.0.0.1"}
        log = place.folder / f"{name}.attempt-{attempt}.rank-{rank}.log"
        with open(log, "w") as output:
            # A session of its own, by which its children are found.
            ranks.append(Rank(subprocess.Popen(own, cwd=place.folder, env=variables, stdout=output, stderr=output,
                                               start_new_session=True), log))
    return ranks


def wait_until_met(ranks: list[Rank], size: int) -> None:
    """Before all ranks have met, nothing shows that one is gone, and the others wait for it for five minutes."""
    while f"{size} ranks" not in ranks[0].said() and all(rank.process.poll() is None for rank in ranks):
        time.sleep(0.01)


def children(ranks: list[Rank]) -> list[str]:
    """The processes that ranks have started and that run still."""
    sessions, found = {rank.process.pid for rank in ranks}, []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = status.read_text().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        if int(rest.split()[3]) in sessions and rest.split()[0] != "Z":
            found.append(f"{name} ({status.parent.name})")
    return found


def end_all(ranks: list[Rank]) -> None:
    for rank in ranks:
        if rank.process.poll() is None:
            rank.process.kill()
            rank.process.wait()


def names(rank: Rank, number: int, gone: Rank) -> str | None:
    """What is wrong with the error of a rank after the rank `number` was killed or stopped."""
    status, text = rank.process.returncode, rank.error()
    if status in (None, 0) or status < 0:
        return f"ended with {status}: {text}"
    is_named = f"rank {number} (process {gone.process.pid} on " in text
    is_raw = re.search(r"^\[[WE]\d{4} ", rank.said(), re.M)
    return None if is_named and not is_raw else f"{'a raw message' if is_named else 'another error'}: {text}"


def lose(ranks: list[Rank], number: int, way: str) -> tuple[float, list[str]]:
    """Kills or stops a rank. Gives the seconds until the others have ended, and what was wrong with how they did."""
    gone, others = ranks[number], [rank for at, rank in enumerate(ranks) if at != number]
    gone.process.send_signal(signal.SIGKILL if way == "kill" else signal.SIGSTOP)
    begun = time.monotonic()
    hang = [rank.log.name for rank in others if rank.end(max(0.0, begun + BOUND - time.monotonic())) is None]
    took = time.monotonic() - begun
    wrong = [f"{log}: runs after {BOUND} s" for log in hang]
    if way == "stop":
        gone.process.send_signal(signal.SIGCONT)
    if gone.end(BOUND) is None:
        wrong.append(f"{gone.log.name}: runs {BOUND} s after it was continued")
    end_all(ranks)
    if not hang and all(rank.process.returncode == 0 for rank in others):
        # The run had ended.
        return 0.0, wrong
    for rank in others if way == "kill" else ranks:
        what = names(rank, number, gone)
        wrong += [f"{rank.log.name}: {what}"] if what else []
    until = time.monotonic() + CHILDREN
    while children(ranks) and time.monotonic() < until:
        time.sleep(0.05)
    return took, wrong + [f"a child runs on: {child}" for child in children(ranks)]


def lose_and_resume(place: Place, name: str, size: int, events: int, window: float, draw: random.Random) -> Found:
    """Kills or stops a rank of the run up to this many times, each time resumes it, and then lets it end."""
    started: list[Rank] = []
    try:
        return attempts(place, name, size, events, window, draw, started)
    finally:
        end_all(started)


def attempts(
    place: Place, name: str, size: int, events: int, window: float, draw: random.Random, started: list[Rank]
) -> Found:
    """The same; `started` has the ranks that may run."""
    run, lost, new, longest, wrong = place.run(name), 0, 0, 0.0, []
    for attempt in range(3 * events + 9):
        resume = bool(checkpoints(run))
        if not resume:
            shutil.rmtree(run, ignore_errors=True)
            new += 1
        ranks = start(place, name, resume, size, attempt)
        started[:] = ranks
        wait_until_met(ranks, size)
        until, is_lost = time.monotonic() + draw.uniform(0, window * 2 ** (new - 1)), False
        while lost < events and not is_lost:
            while time.monotonic() < until and any(rank.process.poll() is None for rank in ranks):
                time.sleep(0.005)
            if any(rank.process.poll() is not None for rank in ranks):
                break
            number, way = draw.randrange(size), draw.choice(WAYS)
            lost += 1
            print(f"{name}, attempt {attempt}: {way} rank {number}", flush=True)
            if way == "pause":
                ranks[number].process.send_signal(signal.SIGSTOP)
                time.sleep(draw.uniform(0.05, PAUSE))
                ranks[number].process.send_signal(signal.SIGCONT)
                until = time.monotonic() + draw.uniform(0, window)
                continue
            took, more = lose(ranks, number, way)
            longest, wrong, is_lost = max(longest, took), wrong + more, True
        if is_lost:
            continue
        hang = [rank.log.name for rank in ranks if rank.end(10 * BOUND) is None]
        end_all(ranks)
        bad = [f"{rank.log.name}: exit status {rank.process.returncode}: {rank.error()}"
               for rank in ranks if rank.process.returncode != 0]
        return Found(lost, new, longest, wrong + [f"{log}: it does not end" for log in hang] + bad)
    return Found(lost, new, longest, [*wrong, "the run never ends"])


def run_whole(place: Place, name: str, size: int) -> float:
    """A run that nobody kills. Gives its seconds."""
    begun = time.monotonic()
    ranks = start(place, name, False, size, 0)
    if any([rank.process.wait() for rank in ranks]):
        raise SystemExit(f"{name}: {[rank.error() for rank in ranks]}")
    return time.monotonic() - begun
