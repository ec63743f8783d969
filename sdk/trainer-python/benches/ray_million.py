"""A million rows on a local Ray cluster of four nodes, processes with one CPU and 200 MB of object store each, while a
worker and a node are killed, a node is added, and the driver is killed and started again. The scores are compared with
the scores of one process. Then the same job without kills, one process, and a plain function in Python in `map_batches` are
timed, and requests to an endpoint counted by the second. It needs the wheel and `pip install 'ray[data]'`.

    python sdk/trainer-python/benches/ray_million.py [ROWS]
"""
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow
import pyarrow.parquet
import ray
from ray.cluster_utils import Cluster

ROOT = Path(__file__).resolve().parents[3]
ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
FILES, NODES, GROUP = 8, 4, 8
GAVEL = Path(sys.executable).with_name("gavel")
COMPONENT, ASKS = ROOT / "target/plugins/exact-answer.wasm", ROOT / "target/guests/asks.wasm"
NODE = {"num_cpus": 1, "object_store_memory": 200 << 20}
RATE, QUESTIONS = 100, 4000
folder = Path(tempfile.mkdtemp(prefix="ray-million-"))
data = folder / "rows"


def show(what, **figures):
    print(json.dumps({"what": what, **figures}), flush=True)


def write_rows():
    data.mkdir()
    for number in range(FILES):
        part = range(number * ROWS // FILES, (number + 1) * ROWS // FILES)
        table = {
            "id": [f"task-{at // GROUP}" for at in part],
            "prompt": [f"What is {at // GROUP % 1000} + {at % GROUP}?" for at in part],
            "response": ["step " * 40 + f"\nAnswer: {at // GROUP % 1000 + at % GROUP + (at % 3 == 0)}" for at in part],
            "answer": [str(at // GROUP % 1000 + at % GROUP) for at in part],
        }
        pyarrow.parquet.write_table(pyarrow.table(table), data / f"{number}.parquet", row_group_size=50_000)


def gavel(out, *more):
    return [str(GAVEL), "score", "--plugin", str(COMPONENT), "--data", str(data), "--out", str(out), "--seed", "7", *more]


def timed(command):
    begun = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return time.perf_counter() - begun


def facts(line):
    """All of an outcome but what depends on time and memory."""
    outcome = json.loads(line)
    for call in outcome["plugins"].values():
        for use in ("elapsed_us", "cpu_us", "peak_memory"):
            del call[use]
    return outcome


def compare(out, alone):
    """The rows of a job, and how many differ from the same rows of one process."""
    rows = differ = 0
    with open(alone) as expected:
        for part in sorted(out.glob("part-*.jsonl")):
            with open(part) as lines:
                for line in lines:
                    rows += 1
                    differ += facts(line) != facts(next(expected, "null"))
        differ += sum(1 for _ in expected)
    return rows, differ


def workers():
    """The processes of workers that score."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if "ShardScorer" in line and "ray::" in line]


def with_kills(cluster, nodes, out):
    """Runs the job, and does harm to it as it goes."""
    command = gavel(out, "--ray", cluster.address)
    log = open(folder / "driver.log", "a")
    shards = -(-ROWS // min(8192, max(64, ROWS // 128)))
    begun = time.perf_counter()

    def start():
        return subprocess.Popen(command, stdout=log, stderr=log)

    def reach(driver, part):
        """Waits until this part of the shards is scored."""
        while len(list(out.glob("shards/*.jsonl"))) < part * shards:
            if driver.poll() is not None:
                sys.exit(f"the driver ended too early: {folder / 'driver.log'}")
            time.sleep(0.05)
        return len(list(out.glob("shards/*.jsonl")))

    driver = start()
    show("kill a worker", shards=reach(driver, 0.15), of=shards)
    os.kill(workers()[-1], signal.SIGKILL)
    show("kill a node", shards=reach(driver, 0.3))
    cluster.remove_node(nodes.pop(), allow_graceful=False)
    show("add a node", shards=reach(driver, 0.45))
    nodes.append(cluster.add_node(**NODE))
    show("kill the driver", shards=reach(driver, 0.6))
    driver.kill()
    driver.wait()
    driver = start()
    if driver.wait():
        sys.exit(f"the driver failed: {folder / 'driver.log'}")
    log.close()
    return time.perf_counter() - begun


def plain_function(out):
    """The same job with a function in Python."""
    found = re.compile(r"Answer: (\S+)")

    def score(batch):
        answers = zip(batch["response"].to_pylist(), batch["answer"].to_pylist())
        rewards = [float((found.findall(text) or [None])[-1] == truth) for text, truth in answers]
        return pyarrow.table({"id": batch["id"], "reward": rewards})

    begun = time.perf_counter()
    scored = ray.data.read_parquet(str(data)).map_batches(score, batch_format="pyarrow", batch_size=8192)
    scored.write_json(str(out))
    return time.perf_counter() - begun


class Endpoint:
    """A language model that counts requests."""

    def __init__(self):
        self.times, lock, endpoint = [], threading.Lock(), self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                with lock:
                    endpoint.times.append(time.monotonic())
                self.rfile.read(int(self.headers["content-length"]))
                answer = b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "1"}, "finish_reason": "stop"}]}'
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def most_in_a_second(self):
        times = sorted(self.times)
        first = most = 0
        for last, at in enumerate(times):
            while at - times[first] >= 1:
                first += 1
            most = max(most, last - first + 1)
        return most


def with_an_endpoint(cluster, nodes):
    """Counts requests of all workers together, while a worker and a node die and a node joins."""
    endpoint = Endpoint()
    few = folder / "questions"
    few.mkdir()
    table = pyarrow.table({"response": [str(at) for at in range(QUESTIONS)]})
    pyarrow.parquet.write_table(table, few / "0.parquet")
    chat = f'{{ base_url = "http://127.0.0.1:{endpoint.server.server_port}/v1", model = "m", limit = "judge" }}'
    command = [str(GAVEL), "score", "--ray", cluster.address, "--data", str(few), "--out", str(folder / "judged")]
    command += ["--plugin", str(ASKS), "--grant", 'asks={ chat = ["judge"] }', "--chat", f"judge={chat}"]
    command += ["--limiter", f"judge={{ requests_per_second = {RATE}, concurrency = 16 }}", "--json"]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for part, harm in (
        (0.2, lambda: os.kill(workers()[-1], signal.SIGKILL)),
        (0.4, lambda: cluster.remove_node(nodes.pop(), allow_graceful=False)),
        (0.6, lambda: nodes.append(cluster.add_node(**NODE))),
    ):
        while len(endpoint.times) < part * QUESTIONS and driver.poll() is None:
            time.sleep(0.05)
        harm()
    summary = json.loads(driver.communicate()[0])
    seconds = endpoint.times[-1] - endpoint.times[0]
    show(
        "an endpoint",
        rows=summary["rows"],
        outcomes=summary["outcomes"],
        requests=len(endpoint.times),
        limit_per_second=RATE,
        most_in_a_second=endpoint.most_in_a_second(),
        mean_per_second=round(len(endpoint.times) / seconds, 1),
    )


def main():
    write_rows()
    alone = folder / "alone.jsonl"
    show("one process", seconds=round(timed(gavel(alone)), 1), rows=ROWS)
    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    nodes = [cluster.add_node(**NODE) for _ in range(NODES - 1)]
    cluster.wait_for_nodes()
    out = folder / "scores"
    seconds = with_kills(cluster, nodes, out)
    rows, differ = compare(out, alone)
    show("a job with kills", seconds=round(seconds, 1), rows=rows, differ=differ)
    shutil.rmtree(out)
    show("a job without kills", seconds=round(timed(gavel(folder / "again", "--ray", cluster.address)), 1))
    with_an_endpoint(cluster, nodes)
    ray.init(address=cluster.address, logging_level=logging.WARNING, log_to_driver=False)
    show("a plain function", seconds=round(plain_function(folder / "plain"), 1))
    ray.shutdown()
    cluster.shutdown()
    shutil.rmtree(folder)
    if rows != ROWS or differ:
        sys.exit("the scores differ from the scores of one process")


if __name__ == "__main__":
    main()
