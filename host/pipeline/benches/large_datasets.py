"""Datasets of up to ten million rows: how long `gavel train` takes until its first step, and its memory. The rows are
made once, in Parquet and in JSON Lines. The model has one layer of 16 numbers, so that memory is of the rows.

    cargo xtask plugins
    python host/pipeline/benches/large_datasets.py --rows 1000000 10000000 --other ../before/target/release/gavel

Each line has a format, a number of rows and a program:

start   seconds from the start of the process to the first line of its metrics
step    seconds of the last of three steps, each of 64 draws
memory  the most memory of the process (VmHWM), in MiB
draws   the hash of the ids, the prompts and the groups of the three steps, which must be the same in all programs
"""
import argparse
import hashlib
import json
import subprocess
import tempfile
import time
from pathlib import Path

import demo_runs

CONFIG = """
[model]
device = "cpu"
[model.init]
vocab_size = 259
hidden_size = 16
intermediate_size = 16
num_hidden_layers = 1
num_attention_heads = 2

[data]
train = "{data}"

[rollout]
group_size = 2
max_tokens = 4

[[reward]]
name = "letter"
path = "target/plugins/format.wasm"
params = {{ pattern = '(?s).*[a-z].*' }}

[train]
steps = 3
prompts_per_step = 64
learning_rate = 1e-3
validate_every = 1000

[checkpoint]
every = 1000

[log]
dir = "{folder}"
tensorboard = false

[resources]
torch_threads = 1
"""
# Rows of a row group of Parquet.
GROUP = 100_000


def row(number):
    text = f"A train with {number} seats stops {number % 17} times and {number % 5} people get off each time. How many?"
    return {"prompt": text, "answer": str(number - number % 17 * (number % 5)), "data_source": f"trains-{number % 3}",
            "extra_info": {"index": number, "split": "train"}}


def make(path, rows):
    """Writes the rows, unless the file is there."""
    if path.exists():
        return
    partial = path.with_name("partial-" + path.name)
    if path.suffix == ".jsonl":
        with open(partial, "w") as out:
            for number in range(rows):
                out.write(json.dumps(row(number)) + "\n")
    else:
        import pyarrow
        import pyarrow.parquet

        writer = None
        for first in range(0, rows, GROUP):
            table = pyarrow.Table.from_pylist([row(number) for number in range(first, min(first + GROUP, rows))])
            writer = writer or pyarrow.parquet.ParquetWriter(partial, table.schema)
            writer.write_table(table)
        writer.close()
    partial.rename(path)


def most_memory(process):
    """MiB of the process so far; None once it has ended."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
    except OSError:
        return None
    line = next((line for line in status.splitlines() if line.startswith("VmHWM")), None)
    return line and int(line.split()[1]) / 1024


def measure(gavel, data):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "run.toml").write_text(CONFIG.format(data=data, folder=folder))
        began, started, memory = time.monotonic(), None, 0
        process = subprocess.Popen([gavel.resolve(), "train", "-c", folder / "run.toml"], cwd=demo_runs.root,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        metrics = folder / "run/metrics.jsonl"
        while process.poll() is None:
            memory = most_memory(process) or memory
            if started is None and metrics.exists() and metrics.stat().st_size:
                started = time.monotonic() - began
            time.sleep(0.05)
        if process.returncode:
            return dict(failed=process.returncode, memory=memory, why=process.stderr.read().strip()[-300:])
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        drawn = hashlib.blake2b(digest_size=6)
        for path in sorted((folder / "run/trajectories").iterdir()):
            for line in map(json.loads, path.read_text().splitlines()):
                drawn.update(json.dumps([line["id"], line["task"], line["prompt"], line["ground_truth"]]).encode())
        return dict(start=started, step=lines[-1]["time/step"], memory=memory, draws=drawn.hexdigest())


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--gavel", type=Path, default=demo_runs.root / "target/release/gavel")
parser.add_argument("--other", type=Path, help="another program, such as an earlier one")
parser.add_argument("--other-rows", type=int, default=1_000_000, help="the most rows for it (1000000)")
parser.add_argument("--rows", type=int, nargs="+", default=[1000, 1_000_000, 10_000_000])
parser.add_argument("--formats", nargs="+", choices=["parquet", "jsonl"], default=["parquet", "jsonl"])
parser.add_argument("--folder", type=Path, default=demo_runs.root / "target/large-datasets", help="where rows are kept")
given = parser.parse_args()
given.folder.mkdir(parents=True, exist_ok=True)
for rows in given.rows:
    for kind in given.formats:
        data = (given.folder / f"rows-{rows}.{kind}").resolve()
        make(data, rows)
        programs = {"gavel": given.gavel}
        if given.other and rows <= given.other_rows:
            programs["other"] = given.other
        for name, program in programs.items():
            found = measure(program, data)
            print(f"{kind} {rows} {name}", "  ".join(f"{key} {value:.2f}" if isinstance(value, float) else
                  f"{key} {value}" for key, value in found.items()), flush=True)
