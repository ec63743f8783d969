"""How long `gavel` takes to start, against `gavel-models`, which loads libtorch: `python host/cli/benches/start.py`.

Both print their version, by turns. Prints the medians of the processor time and of the time in all.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import time

root = pathlib.Path(__file__).resolve().parents[3]


def started(program: pathlib.Path) -> tuple[float, float]:
    """The processor time and the time of a start, in milliseconds."""
    begun = time.monotonic()
    process = subprocess.Popen([program, "--version"], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{program} failed with status {status}")
    return 1e3 * (usage.ru_utime + usage.ru_stime), 1e3 * (time.monotonic() - begun)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--programs", type=pathlib.Path, default=root / "target/release", help="the folder of both")
parser.add_argument("--rounds", type=int, default=20)
arguments = parser.parse_args()
times: dict[str, list[tuple[float, float]]] = {"gavel": [], "gavel-models": []}
for _ in range(arguments.rounds):
    for name, found in times.items():
        found.append(started(arguments.programs / name))
for name, found in times.items():
    processor, whole = (statistics.median(values) for values in zip(*found))
    print(f"{name:<13} {processor:6.1f} ms of processor time, {whole:6.1f} ms in all")
