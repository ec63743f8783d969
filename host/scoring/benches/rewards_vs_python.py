"""An exact-match reward over 100,000 responses of 2 KB, in Gavel and in a Python trainer. In Gavel, each response has a
fresh sandboxed instance, or instances answer 1,000 calls each, as a pure reward allows. In Python, the reward is the
function itself, in a pool of two processes, and in a fresh interpreter for each sample. All start from the same file and
end with the scores in a file. Gavel's times are without its start, as Python's are. It also measures the processor time
of a row with one worker and with two, and of its call.

    cargo xtask plugins && cargo build --release --workspace
    python host/scoring/benches/rewards_vs_python.py

`--rows 1000000` scores a million rows in Gavel alone, with the peak of its memory, and also from a Parquet file where
the package pyarrow is installed.
"""
import argparse
import itertools
import json
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROWS, ROUNDS, FRESH = 100_000, 3, 100
root = Path(__file__).resolve().parents[3]
work = tempfile.TemporaryDirectory()
folder = Path(work.name)
REUSE = ["--reuse", "1000"]


def row(at):
    return {"response": "lorem ipsum " * 170 + f"\nAnswer: {at % 100}", "answer": str(at % 50)}


def correct(rows):
    return sum(at % 100 == at % 50 for at in range(rows))


def jsonl(rows, name="rows.jsonl"):
    with open(folder / name, "w") as file:
        file.writelines(json.dumps(row(at)) + "\n" for at in range(rows))
    return folder / name


def parquet(rows):
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return None
    path, numbers = folder / "rows.parquet", iter(range(rows))
    schema = pyarrow.schema([("response", pyarrow.string()), ("answer", pyarrow.string())])
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        while some := list(itertools.islice(numbers, 100_000)):
            writer.write_table(pyarrow.Table.from_pylist([row(at) for at in some], schema))
    return path


def gavel(data, *options):
    """Seconds, processor time in seconds, and MiB at the peak; the scores are in out.jsonl."""
    command = [root / "target/release/gavel", "score", "--plugin", root / "target/plugins/exact-answer.wasm"]
    command += ["--data", data, "--out", folder / "out.jsonl", *options]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    error = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, error
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def checked(data, rows, *options):
    """The same without the start, and the mean processor time of a call in microseconds."""
    start = gavel(first, *options)
    whole = gavel(data, *options)
    rewards = calls = 0
    for line in open(folder / "out.jsonl"):
        scored = json.loads(line)
        rewards += scored["reward"]
        calls += scored["plugins"]["exact-answer"]["cpu_us"]
    assert rewards == correct(rows), (rewards, correct(rows))
    return whole[0] - start[0], whole[1] - start[1], whole[2], calls / rows


def score(row):
    found = re.findall(r"Answer: *([^\n]+)", row["response"])
    return float(bool(found) and found[-1].strip() == row["answer"])


def read():
    return [json.loads(line) for line in open(folder / "rows.jsonl")]


def write(scores):
    assert sum(scores) == correct(len(scores)), sum(scores)
    (folder / "scores.jsonl").write_text("".join(json.dumps({"score": score}) + "\n" for score in scores))


def in_process():
    write([score(row) for row in read()])


def pool(chunk):
    with multiprocessing.Pool(2) as workers:
        write(workers.map(score, read(), chunksize=chunk))


def fresh_interpreters():
    code = "import json,re,sys;row=json.load(sys.stdin);found=re.findall(r'Answer: *([^\\n]+)',row['response']);"
    code += "print(float(bool(found) and found[-1].strip()==row['answer']))"
    for each in map(row, range(FRESH)):
        subprocess.run([sys.executable, "-I", "-S", "-c", code], input=json.dumps(each), check=True, capture_output=True, text=True)


def seconds(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def against_python(data):
    ways = (
        ("gavel, fresh instance a sample", ROWS, lambda: checked(data, ROWS)[0], "yes / yes / yes"),
        ("gavel, --reuse 1000", ROWS, lambda: checked(data, ROWS, *REUSE)[0], "yes / yes / yes"),
        ("python function in the trainer", ROWS, lambda: seconds(in_process), "no / no / no"),
        ("python, 2 processes, chunk 1", ROWS, lambda: seconds(lambda: pool(1)), "no / no / no"),
        ("python, 2 processes, chunk 64", ROWS, lambda: seconds(lambda: pool(64)), "no / no / no"),
        ("python, fresh process a sample", FRESH, lambda: seconds(fresh_interpreters), "with a time-out / with rlimit / no"),
    )
    # By turns, since other programs may use the machine.
    times = [[way[2]() for way in ways] for _ in range(ROUNDS)]
    print("                                  samples/s   a loop is ended / memory is capped / files are out of reach")
    for (name, count, _, guards), taken in zip(ways, zip(*times)):
        print(f"{name:32} {count / statistics.median(taken):10.0f}   {guards}")


def of_a_row(data, rows, rounds):
    print("                               rows/s   processor time of a row: the call, all else   MiB at the peak")
    for name, options in (("fresh", []), ("--reuse 1000", REUSE)):
        for workers in ("1", "2"):
            rounds_ = [checked(data, rows, "--workers", workers, *options) for _ in range(rounds)]
            wall, cpu, peak, call = map(statistics.median, zip(*rounds_))
            name_ = f"{data.suffix[1:]}, {name}, {workers} workers"
            print(f"{name_:30} {rows / wall:8.0f} {call:14.1f} µs {cpu / rows * 1e6 - call:14.1f} µs {peak:20.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int)
    rows = parser.parse_args().rows
    first = jsonl(1, "first.jsonl")
    gavel(first)  # compiles the component, once for all later starts
    data = jsonl(rows or ROWS)
    if rows is None:
        against_python(data)
    of_a_row(data, rows or ROWS, ROUNDS if rows is None else 1)
    if rows and (data := parquet(rows)):
        of_a_row(data, rows, 1)
