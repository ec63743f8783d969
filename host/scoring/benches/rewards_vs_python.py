"""An exact-match reward over 10,000 responses of 2 KB, in Gavel with a fresh sandboxed instance for each, and in a
Python trainer: as the function itself, in a pool of two processes, and in a fresh interpreter for each sample. All
start from the same file and end with the scores in a file. Also measures the processor time of a row, and of its call.

    cargo xtask plugins && cargo build --release --workspace
    python host/scoring/benches/rewards_vs_python.py
"""
import json
import multiprocessing
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROWS, ROUNDS, FRESH = 10_000, 3, 100
root = Path(__file__).resolve().parents[3]
folder = Path(tempfile.mkdtemp())
data = folder / "rows.jsonl"
rows = [{"response": "lorem ipsum " * 170 + f"\nAnswer: {at % 100}", "answer": str(at % 50)} for at in range(ROWS)]
data.write_text("".join(json.dumps(row) + "\n" for row in rows))
expected = sum(row["response"].endswith(f"Answer: {row['answer']}") for row in rows)


def score(row):
    found = re.findall(r"Answer: *([^\n]+)", row["response"])
    return float(bool(found) and found[-1].strip() == row["answer"])


def read():
    return [json.loads(line) for line in open(data)]


def write(scores):
    assert sum(scores) == expected, (sum(scores), expected)
    (folder / "scores.jsonl").write_text("".join(json.dumps({"score": score}) + "\n" for score in scores))


def gavel(data=data):
    out = folder / "out.jsonl"
    command = [root / "target/release/gavel", "score", "--plugin", root / "target/plugins/exact-answer.wasm"]
    subprocess.run([*command, "--data", data, "--out", out], check=True, capture_output=True)
    return [json.loads(line) for line in open(out)]


def checked_gavel():
    assert sum(row["reward"] for row in gavel()) == expected


def processor_time():
    """Microseconds of processor time for each row, without the start of the program: in the call, and elsewhere."""

    def used(path):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        scored = gavel(path)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, scored

    first = folder / "first.jsonl"
    first.write_text(json.dumps(rows[0]) + "\n")
    times = []
    for _ in range(ROUNDS):
        (start, _), (all_rows, scored) = used(first), used(data)
        call = statistics.mean(row["plugins"]["exact-answer"]["cpu_us"] for row in scored)
        times.append(((all_rows - start) / ROWS * 1e6 - call, call))
    return statistics.median(call for _, call in times), statistics.median(rest for rest, _ in times)


def in_process():
    write([score(row) for row in read()])


def pool(chunk):
    with multiprocessing.Pool(2) as workers:
        write(workers.map(score, read(), chunksize=chunk))


def fresh_interpreters():
    code = "import json,re,sys;row=json.load(sys.stdin);found=re.findall(r'Answer: *([^\\n]+)',row['response']);"
    code += "print(float(bool(found) and found[-1].strip()==row['answer']))"
    for row in read()[:FRESH]:
        subprocess.run([sys.executable, "-I", "-S", "-c", code], input=json.dumps(row), check=True, capture_output=True, text=True)


def seconds(run):
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


if __name__ == "__main__":
    checked_gavel()  # compiles the component, once for all later starts
    print("                                  samples/s   a loop is ended / memory is capped / files are out of reach")
    for name, count, run, guards in (
        ("gavel, fresh instance a sample", ROWS, checked_gavel, "yes / yes / yes"),
        ("python function in the trainer", ROWS, in_process, "no / no / no"),
        ("python, 2 processes, chunk 1", ROWS, lambda: pool(1), "no / no / no"),
        ("python, 2 processes, chunk 64", ROWS, lambda: pool(64), "no / no / no"),
        ("python, fresh process a sample", FRESH, fresh_interpreters, "with a time-out / with rlimit / no"),
    ):
        print(f"{name:32} {count / seconds(run):10.0f}   {guards}")
    call, rest = processor_time()
    print(f"gavel, processor time of a row: {call:.0f} µs for the call, {rest:.0f} µs for all else")
