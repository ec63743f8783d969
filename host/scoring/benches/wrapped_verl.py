"""A reward function made for verl, wrapped as a component, over responses of 400 characters: rows a second of
`gavel score` with one to three workers, a fresh instance for each row or 64 rows to an instance, and the time of a
call in fresh and in reused instances. The alternative is the same function in Python, as verl's reward loop calls it:
in two processes, which take a row at a time. All but the calls start from the same file and end with the scores in a
file.

    cargo build --release -p gavel --bin gavel
    python host/scoring/benches/wrapped_verl.py

It needs what a plugin in Python needs (`gavel plugin doctor`). A round has enough rows that the first calls of an
instance hardly count, and the sides take turns, so that other programs disturb all alike.
"""
import argparse
import json
import multiprocessing
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROWS, ROUNDS = 20_000, 3
REWARD = r"""
import re

NUMBER = re.compile(r"####\s*(-?[0-9][0-9.,]*)")


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    found = NUMBER.findall(solution_str)
    return float(bool(found) and found[-1].replace(",", "").rstrip(".") == ground_truth)
"""
root = Path(__file__).resolve().parents[3]
folder = Path(tempfile.mkdtemp())
(folder / "reward_fn.py").write_text(REWARD)
sys.path.insert(0, str(folder))
from reward_fn import compute_score  # noqa: E402


def row(at):
    response = ("step " * 80)[:390] + f"\n#### {at % 100}"
    truth = str(at % 50)
    return {"data_source": "openai/gsm8k", "prompt": "Add.", "response": response, "reward_model": {"ground_truth": truth}}


rows = [row(at) for at in range(ROWS)]
expected = sum(at % 100 == at % 50 for at in range(ROWS))
data, first = folder / "rows.jsonl", folder / "first.jsonl"
data.write_text("".join(json.dumps(row) + "\n" for row in rows))
first.write_text(json.dumps(rows[0]) + "\n")


def ask(row):
    return compute_score(row["data_source"], row["response"], row["reward_model"]["ground_truth"])


def python():
    with multiprocessing.Pool(2) as workers:
        scores = workers.map(ask, [json.loads(line) for line in open(data)], chunksize=1)
    (folder / "python.jsonl").write_text("".join(json.dumps({"score": score}) + "\n" for score in scores))
    assert sum(scores) == expected


def made(gavel, name, pure):
    """The component of the wrapped function."""
    subprocess.run([gavel, "plugin", "new", name, "--from-verl", folder / "reward_fn.py"], cwd=folder, check=True)
    main = folder / name / "main.py"
    if pure:
        main.write_text(main.read_text().replace("from_verl(compute_score)", "from_verl(compute_score, pure=True)"))
    subprocess.run([gavel, "plugin", "build"], cwd=folder / name, check=True)
    return folder / name


def score(gavel, plugin, path, *options):
    out = folder / "scores.jsonl"
    command = [gavel, "score", "--plugin", f"reward={plugin}", "--data", path, "--out", out, *options]
    subprocess.run(command, check=True, capture_output=True)
    return [json.loads(line)["reward"] for line in open(out)]


def used(run):
    """Seconds, seconds of processor time, and page faults of `run` in child processes."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, processor, after.ru_minflt - before.ru_minflt


def measure(gavel, plugin, *options):
    def all_rows():
        assert sum(score(gavel, plugin, data, *options)) == expected

    return [whole - start for whole, start in zip(used(all_rows), used(lambda: score(gavel, plugin, first, *options)))]


def show(name, rounds):
    seconds, processor, faults = (statistics.median(column) / ROWS for column in zip(*rounds))
    print(json.dumps({"of": name, "rows_per_second": round(1 / seconds), "processor_us": round(processor * 1e6),
                      "page_faults": round(faults)}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gavel", default=root / "target/release/gavel", type=Path)
    gavel = parser.parse_args().gavel.resolve()
    plugin, pure = made(gavel, "fresh", False), made(gavel, "kept", True)
    score(gavel, plugin, first)
    kept = ("--reuse", "64")
    sides = {"gavel score, 1 worker": lambda: measure(gavel, plugin, "--workers", "1"),
             "gavel score, 2 workers": lambda: measure(gavel, plugin, "--workers", "2"),
             "gavel score, 3 workers": lambda: measure(gavel, plugin, "--workers", "3"),
             "gavel score, reuse = 64, 1 worker": lambda: measure(gavel, pure, "--workers", "1", *kept),
             "gavel score, reuse = 64, 2 workers": lambda: measure(gavel, pure, "--workers", "2", *kept),
             "Python, 2 processes": lambda: used(python)}
    rounds = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, side in sides.items():
            rounds[name].append(side())
    for name, found in rounds.items():
        show(name, found)
    command = [gavel, "plugin", "bench", pure, "--data", data, "--json"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    print(json.dumps({"of": "a call, median us", "fresh": report["latency_us"]["p50"],
                      "reuse = 64": report["reuse"]["latency_us"]["p50"], "advice": report["advice"]}))


if __name__ == "__main__":
    main()
