"""A million rows on a cluster of Ray with four nodes, which are processes of this machine, each with one processor and
200 MB of store. A worker and a node are killed, a node is added, and the driver is killed and started again. The rows are
counted, and compared with the lines of one process, byte for byte but for times and memory. It also measures rows a
second on the cluster without these losses, of one process, and of a Python function with `ray.data` on the same cluster.

    pip install 'ray[data]==2.60.0' typing_extensions
    cargo xtask wheel && pip install target/wheels/gavel_rl-*.whl
    python sdk/trainer-python/benches/million_rows_on_ray.py

`--rows` sets another number, and `--only losses` leaves out what is only measured. `--nice 19` lets other programs go
first; Ray would do so for its workers alone.
"""
import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from itertools import zip_longest
from pathlib import Path

# Ray must not give up where other programs use the processors.
os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_agent_register_timeout_ms="600000")
import gavel_rl
import pyarrow
import pyarrow.parquet
from ray.cluster_utils import Cluster

NODES, STORE = 4, 200 << 20
FILES, GROUP, PATIENCE = 16, 5, 3600
GAVEL = Path(sys.executable).with_name("gavel")
COMPONENT = Path(gavel_rl.__file__).parent / "plugins/exact-answer.wasm"
#: What a command begins with.
NICE = ["nice", "-n", "0"]
#: What a line has that depends on where and when its row was scored.
USED = re.compile(rb'"(elapsed_us|cpu_us|peak_memory)":\d+')
FUNCTION = r"""
import re
import sys

import pyarrow
import ray

ANSWER = re.compile(r"Answer:\s*(-?[0-9]+)")


def score(batch):
    found = (ANSWER.findall(response) for response in batch["response"].to_pylist())
    rewards = [float(bool(all) and all[-1] == truth) for all, truth in zip(found, batch["answer"].to_pylist())]
    return pyarrow.table({"id": batch["id"], "reward": rewards})


address, data, out = sys.argv[1:]
ray.init(address=address)
ray.data.read_parquet(data).map_batches(score, batch_size=4096, batch_format="pyarrow").write_json(out)
"""


def write_rows(folder, count):
    """Rows that all differ, in groups of five with an id. The answer of every third is wrong."""
    folder.mkdir()
    size = -(-count // FILES)
    for number in range(FILES):
        rows = range(number * size, min(count, (number + 1) * size))
        table = pyarrow.table({
            "id": [f"task {row // GROUP}" for row in rows],
            "prompt": [f"What is {row // GROUP} + 1?" for row in rows],
            "response": [("step " * 80)[:390] + f"sample {row}\nAnswer: {row // GROUP + 1 + (row % 3 == 2)}" for row in rows],
            "answer": [str(row // GROUP + 1) for row in rows],
        })
        pyarrow.parquet.write_table(table, folder / f"{number:02}.parquet", row_group_size=20_000)


def node():
    """The arguments of a node. Ray waits 15 seconds for ports that a node chooses, so they are chosen here."""
    names = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port", "runtime_env_agent_port")
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in names]
    ports = {name: each.getsockname()[1] for name, each in zip(names, sockets)}
    for each in sockets:
        each.close()
    return {"num_cpus": 1, "object_store_memory": STORE, **ports}


def descendants(process):
    """The processes below one."""
    parents = {}
    for each in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[int(each)] = int(Path(f"/proc/{each}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    found = [process]
    for above in found:
        found += [each for each, parent in parents.items() if parent == above]
    return found[1:]


class Job:
    """`gavel score --ray`, which this process can kill."""

    def __init__(self, cluster, data, out):
        self._cluster, self._out = cluster, out
        self._command = [*NICE, GAVEL, "score", "--ray", cluster.address, "--data", data, "--out", out, "--json"]
        self._command += ["--plugin", COMPONENT]
        self.start()

    def start(self):
        self._log = tempfile.TemporaryFile()
        self._driver = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=self._log, text=True)

    def kill(self):
        """Kills the driver."""
        self._driver.kill()
        self._driver.communicate()

    def finish(self):
        """Waits for the end, and returns the summary."""
        stdout, _ = self._driver.communicate()
        if self._driver.returncode != 0:
            self._fail()
        return json.loads(stdout)

    def wait_for(self, share):
        """Waits until a share of the shards is written, and returns their number."""
        give_up = time.monotonic() + PATIENCE
        while True:
            if self._driver.poll() is not None or time.monotonic() > give_up:
                self._fail()
            shards, job = self._out / "shards", self._out / "job.json"
            written = len(list(shards.glob("*.jsonl"))) if shards.exists() else 0
            if written and written >= share * json.loads(job.read_text())["shards"]:
                return written
            time.sleep(0.02)

    def workers(self):
        """The processes of the workers that live, by the id of their node, and the id of the driver's."""
        actors = [actor for actor in self._cluster.global_state.actor_table(None).values() if actor["State"] == "ALIVE"]
        place = {actor["ActorClassName"]: actor["Address"]["NodeID"] for actor in actors}
        pool = [actor for actor in actors if "MapWorker" in actor["ActorClassName"]]
        return {actor["Address"]["NodeID"]: actor["Pid"] for actor in pool}, place["_Lock"]

    def _fail(self):
        self._log.seek(0)
        sys.exit(f"the job ended with {self._driver.poll()}, too early or not at all:\n{self._log.read().decode()}")


def with_losses(cluster, data, out):
    """Runs the job, and loses a worker, a node and the driver. Returns what happened."""
    job, events = Job(cluster, data, out), []

    def note(event, written):
        events.append({"event": event, "shards_written": written})
        print(json.dumps(events[-1]), flush=True)

    def until_two_work():
        """A worker that is not on the driver's node, and its node."""
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            written = job.wait_for(0)
            workers, home = job.workers()
            others = [(node, pid) for node, pid in workers.items() if node != home]
            if others:
                return written, *others[0]
            time.sleep(0.1)
        sys.exit("there is only a worker on the driver's node")

    job.wait_for(0.1)
    written, _, worker = until_two_work()
    os.kill(worker, signal.SIGKILL)
    note("a worker is killed", written)

    job.wait_for(0.2)
    written, lost, _ = until_two_work()
    [lost] = [each for each in cluster.worker_nodes if each.node_id == lost]
    raylet = lost.all_processes["raylet"][0].process.pid
    for process in (raylet, *descendants(raylet)):
        os.kill(process, signal.SIGKILL)
    cluster.remove_node(lost, allow_graceful=False)
    note("a node is killed, with all its processes", written)

    written = job.wait_for(0.3)
    cluster.add_node(**node())
    note("a node is added", written)

    written = job.wait_for(0.5)
    job.kill()
    note("the driver is killed", written)
    before = {path: path.stat().st_mtime_ns for path in (out / "shards").glob("*.jsonl")}
    job.start()
    summary = job.finish()
    kept = {path.stat().st_mtime_ns for path in out.glob("part-*.jsonl")} & set(before.values())
    note("the job has ended", len(list(out.glob("part-*.jsonl"))))
    assert kept, "the driver that was started again began anew"
    return {"rows": summary["rows"], "shards_kept_from_the_first_driver": len(kept), "outcomes": summary["outcomes"]}


def lines(*paths):
    for path in paths:
        with open(path, "rb") as file:
            yield from (USED.sub(rb'"\1":0', line) for line in file)


def compare(out, alone, count):
    """Checks that the job has the lines of one process, byte for byte."""
    number = 0
    for number, (ours, theirs) in enumerate(zip_longest(lines(*sorted(out.glob("part-*.jsonl"))), lines(alone)), 1):
        assert ours == theirs, f"row {number - 1}: {ours} instead of {theirs}"
    assert number == count, f"{number} lines for {count} rows"


def seconds(command):
    begun = time.perf_counter()
    done = subprocess.run([*NICE, *command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed:\n{done.stderr}")
    return time.perf_counter() - begun


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", choices=["losses"])
    parser.add_argument("--nice", type=int, default=0)
    arguments = parser.parse_args()
    NICE[-1], os.environ["RAY_worker_niceness"] = str(arguments.nice), str(os.nice(0) + arguments.nice)
    count, folder = arguments.rows, Path(tempfile.mkdtemp())
    data, alone, function = folder / "rows", folder / "alone.jsonl", folder / "function.py"
    function.write_text(FUNCTION)
    write_rows(data, count)
    found = {"rows": count, "load_before": os.getloadavg()[0]}
    cluster = Cluster(initialize_head=True, head_node_args={**node(), "include_dashboard": False})
    try:
        for _ in range(NODES - 1):
            cluster.add_node(**node())
        measured = {"one process": [GAVEL, "score", "--data", data, "--out", alone, "--plugin", COMPONENT]}
        if arguments.only is None:
            score = [GAVEL, "score", "--ray", cluster.address, "--data", data, "--out", folder / "scores"]
            measured["four nodes"] = [*score, "--plugin", COMPONENT]
            measured["four nodes, a Python function"] = [
                sys.executable, function, cluster.address, data, folder / "function"
            ]
        for name, command in measured.items():
            found[name] = {"rows_per_second": round(count / seconds(command))}
            print(json.dumps({name: found[name]}), flush=True)
        if arguments.only is None:
            compare(folder / "scores", alone, count)
            rewards = [json.loads(line)["reward"] for path in (folder / "function").iterdir() for line in open(path)]
            assert (len(rewards), sum(rewards)) == (count, count - count // 3), "the Python function gives other scores"
        found["with losses"] = with_losses(cluster, data, folder / "losses")
        compare(folder / "losses", alone, count)
        found["compared"] = "equal"
        print(json.dumps(found))
    finally:
        cluster.shutdown()
        shutil.rmtree(folder)


main()
