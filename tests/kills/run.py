"""Kills asynchronous runs at random moments, resumes them, and checks that no task is trained on twice and none is lost.

    cargo build --release --workspace && cargo xtask plugins
    python tests/kills/run.py                   # 50 kills
    python tests/kills/run.py --kills 8 --seed 7
    python tests/kills/run.py --ranks 3 --kills 20

A small random model is trained with a judge that sleeps, longer for longer responses. Each schedule gets an equal share
of the kills; SIGKILL comes at any moment from the start of the process on. A run that was killed before its first
checkpoint is started again, any other is resumed. At the end of each run

- every draw was trained on, dropped or is in the queue of the last checkpoint, exactly once, with all its samples;
- each step trained on as many groups as it has, none staler than allowed;
- the counts in the checkpoint (draws, and groups by what became of them) are those of the trajectories;
- `gavel replay` finds every recorded verdict again;
- where nothing depends on a clock, metrics and weights are those of a run that nobody killed, to the last bit.

With `--ranks`, the runs have that many ranks on this machine. At a random moment after they have met, one of them is
killed, stopped until the others have ended and then continued, or stopped for up to 5 s. After the last, the run goes on.
After the others, all other ranks end within 40 s with an error that names this rank, a rank that is continued names itself,
and no process of a rank is left.

Exits with 1 if a check fails, and then keeps the runs' folder. Two cores take about four minutes, and eight with `--ranks`.
"""
import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ranks import lose_and_resume, run_whole
from runs import RANKS, REPRODUCIBLE, SCHEDULES, Place, check, checkpoints, compare

root = Path(__file__).resolve().parents[2]


def start(place: Place, name: str, resume: bool) -> subprocess.Popen:
    log = open(place.folder / f"{name}.log", "a")
    return subprocess.Popen(place.command(name, resume), cwd=place.folder, stdout=log, stderr=log)


def finish(place: Place, name: str, process: subprocess.Popen) -> None:
    if process.wait() != 0:
        log = (place.folder / f"{name}.log").read_text()
        raise SystemExit(f"{name}: exit status {process.returncode}\n{log[-2000:]}")


def kill_and_resume(place: Place, name: str, kills: int, window: float, draw: random.Random) -> tuple[int, int]:
    """Kills the run up to this many times, then lets it end. Gives the number of kills and of new starts."""
    run, killed, new = place.run(name), 0, 0
    while True:
        resume = bool(checkpoints(run))
        if not resume:
            shutil.rmtree(run, ignore_errors=True)
            new += 1
        process = start(place, name, resume)
        if killed == kills:
            break
        try:
            # Longer each time, so that a run gets a checkpoint even on a machine that has become slower.
            process.wait(draw.uniform(0, window * 2 ** (new - 1)))
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
    finish(place, name, process)
    return killed, new


def search(place: Place, kills: int, draw: random.Random) -> bool:
    """Kills runs of one process. Returns whether all holds."""
    begin = time.monotonic()
    process = start(place, "behind-whole", False)
    while not checkpoints(place.run("behind-whole")) and process.poll() is None:
        time.sleep(0.01)
    begun = time.monotonic() - begin
    finish(place, "behind-whole", process)
    whole = time.monotonic() - begin
    # Some kills come while a process starts, and a run takes several of them.
    window, good = begun + (whole - begun) / 4, True
    print(f"{begun:.1f} s until the first checkpoint, {whole:.1f} s in all", flush=True)
    for number, schedule in enumerate(SCHEDULES):
        left, runs = kills // len(SCHEDULES) + (number < kills % len(SCHEDULES)), 0
        while left > 0:
            runs += 1
            name = f"{schedule}-{runs}"
            killed, new = kill_and_resume(place, name, left, window, draw)
            left -= killed
            good &= report(place, name, f"{killed} kills, {new - 1} before the first checkpoint", [])
    return good


def search_ranks(place: Place, size: int, kills: int, draw: random.Random) -> bool:
    """Kills ranks of runs. Returns whether all holds."""
    whole = run_whole(place, "lockstep-whole", size)
    window, good = whole / 4, True
    print(f"{whole:.1f} s in all", flush=True)
    for number, schedule in enumerate(RANKS):
        left, runs = kills // len(RANKS) + (number < kills % len(RANKS)), 0
        while left > 0:
            runs += 1
            name = f"{schedule}-{runs}"
            found = lose_and_resume(place, name, size, left, window, draw)
            left -= found.events
            what = f"{found.events} events, {found.new - 1} before the first checkpoint, {found.longest:.1f} s at most"
            good &= report(place, name, what, found.wrong)
    return good


def report(place: Place, name: str, what: str, wrong: list[str]) -> bool:
    """Checks a run that has ended, and prints what holds."""
    wrong = wrong + check(place, name)
    schedule = name.split("-")[0]
    if schedule in REPRODUCIBLE:
        wrong += compare(place, name, f"{schedule}-whole")
    print(f"{name}: {what}: {'; '.join(wrong) or 'all holds'}", flush=True)
    return not wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gavel", type=Path, default=root / "target/release/gavel")
    parser.add_argument("--target", type=Path, default=root / "target", help="the folder with plugins/ and guests/")
    parser.add_argument("--kills", type=int, default=50, help="the kills of all schedules together (50)")
    parser.add_argument("--ranks", type=int, help="kill and stop ranks of runs that have so many, at least 2")
    parser.add_argument("--steps", type=int, default=40, help="the steps of a run (40)")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000,
                        help="the seed of the moments; random by default")
    given = parser.parse_args()
    # What it has started ends with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if given.ranks is not None and given.ranks < 2:
        parser.error("--ranks: a run of one rank is a run without --ranks")
    place = Place(Path(tempfile.mkdtemp(prefix="gavel-kills-")), given.gavel.resolve(), given.steps)
    place.write(given.target.resolve())
    print(f"seed {given.seed}, {place.folder}", flush=True)
    draw = random.Random(given.seed)
    good = search_ranks(place, given.ranks, given.kills, draw) if given.ranks else search(place, given.kills, draw)
    if not good:
        raise SystemExit(1)
    shutil.rmtree(place.folder)


if __name__ == "__main__":
    main()
