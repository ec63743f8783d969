#!/usr/bin/env python3
"""Sends a run to the real trackers, and reads it back with their own tools.

    pip install 'wandb==0.31.*' mlflow trackio        # in a virtual environment, or in two
    python host/tracking/benches/real_trackers.py --gavel target/release/gavel --bin venv/bin [--bin other/bin]

It needs no model: the run's folder is written here, as a run writes it, and `gavel runs track` sends it. W&B is read by
`wandb leet inspect --json` and `wandb sync --dry-run`, MLflow by its REST API on a SQLite file, Trackio from its database.
No account and no network are needed.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

STEPS = 300
START = 1_700_000_000


def line(step):
    numbers = {"step": step, "reward/mean": step / 7, "val/openai/gsm8k@4": 0.25, "reward/exact-answer/mean": -step}
    return json.dumps({**numbers, "time/timestamp": START + step}) + "\n"


def write_run(folder):
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "config.toml").write_text(
        "seed = 7\n[train]\nsteps = 300\nlearning_rate = 1e-3\n[chat.judge]\nsecret = 's3cret'\nempty = ''\n"
    )
    (folder / "metrics.jsonl").write_text("".join(map(line, range(1, STEPS + 1))))
    (folder / "end.json").write_text(json.dumps({"kind": "failed", "at": START + 400.0, "error": "out of memory"}))


def tool(name, bins):
    for folder in bins:
        path = pathlib.Path(folder) / name
        if path.exists():
            return str(path.absolute())
    sys.exit(f"{name} is in none of {bins}\nhint: pip install it, and name the folder with --bin")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def request(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(asked, timeout=120) as answer:
        return json.load(answer)


class Server:
    """A process that ends with the block, in a group of its own."""

    def __init__(self, command, ready, log, **more):
        self.command, self.ready, self.log, self.more = command, ready, log, more

    def __enter__(self):
        self.out = open(self.log, "w")
        self.process = subprocess.Popen(
            self.command, stdout=self.out, stderr=subprocess.STDOUT, start_new_session=True, **self.more
        )
        for _ in range(600):
            if self.process.poll() is not None:
                break
            try:
                if self.ready():
                    return self
            except OSError:
                pass
            time.sleep(0.5)
        self.__exit__()
        sys.exit(f"{self.command[0]} does not start:\n{pathlib.Path(self.log).read_text()}")

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
        self.out.close()


def track(gavel, run, table, env=None, fails=False):
    command = [gavel, "runs", "track", str(run), "--to", table]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(env or {})})
    assert (done.returncode != 0) == fails, (command, done.returncode, done.stdout, done.stderr)
    assert "s3cret" not in done.stdout + done.stderr
    return done.stderr


def resumed(run):
    """The run continues after step 250: it repeats 50 steps and adds one."""
    (run / "end.json").unlink()
    lines = [line(step) for step in range(1, 251)]
    lines += [json.dumps({"step": step, "reward/mean": 0.5, "time/timestamp": START + 1000 + step}) + "\n" for step in range(251, 302)]
    (run / "metrics.jsonl").write_text("".join(lines))
    (run / "end.json").write_text(json.dumps({"kind": "ended", "at": START + 2000.0}))


def wandb(gavel, bins, run, work):
    wandb = tool("wandb", bins)

    def read():
        (folder,) = (run / "wandb").iterdir()
        shown = subprocess.run([wandb, "leet", "inspect", str(folder), "--json"], capture_output=True, text=True, check=True)
        assert "s3cret" not in shown.stdout
        return folder, [json.loads(row) for row in shown.stdout.splitlines()]

    track(gavel, run, '{ kind = "wandb", project = "real" }')
    folder, records = read()
    (started,) = [record["run"] for record in records if record["type"] == "run"]
    assert started["project"] == "real" and started["display_name"] == run.name, started
    assert started["config"]["update"]["train"] == {"steps": 300, "learning_rate": 0.001}, started
    history = [record["history"]["item"] for record in records if record["type"] == "history"]
    assert [row["_step"] for row in history] == list(range(1, STEPS + 1))
    assert all(row["reward/mean"] == row["_step"] / 7 for row in history)
    assert all(row["val/openai/gsm8k@4"] == 0.25 for row in history)
    (end,) = [record["exit"] for record in records if record["type"] == "exit"]
    assert end["exit_code"] == 1, end
    resumed(run)
    track(gavel, run, '{ kind = "wandb", project = "real" }')
    folder, records = read()
    history = [record["history"]["item"] for record in records if record["type"] == "history"]
    assert [row["_step"] for row in history] == list(range(1, STEPS + 2))
    assert [row["reward/mean"] for row in history[249:251]] == [250 / 7, 0.5]
    env = {**os.environ, "WANDB_API_KEY": "0" * 40, "WANDB_BASE_URL": "http://127.0.0.1:9"}
    listed = subprocess.run([wandb, "sync", "--dry-run", str(folder)], capture_output=True, text=True, check=True, env=env)
    assert "Would sync 1 run" in listed.stdout + listed.stderr, listed
    return subprocess.run([wandb, "--version"], capture_output=True, text=True).stdout.strip()


def mlflow(gavel, bins, run, work):
    port = free_port()
    url, store = f"http://127.0.0.1:{port}", work / "mlflow.db"
    table = f'{{ kind = "mlflow", url = "{url}", project = "real runs" }}'
    assert "mlflow" in track(gavel, run, table, fails=True), "no server yet"
    command = [tool("mlflow", bins), "server", "--backend-store-uri", f"sqlite:///{store}"]
    command += ["--artifacts-destination", str(work / "artifacts"), "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    with Server(command, lambda: urllib.request.urlopen(f"{url}/health", timeout=5), work / "mlflow.log"):
        api = f"{url}/api/2.0/mlflow"
        # A server that has just started may need longer than a request may take.
        request(f"{api}/experiments/search", {"max_results": 1})
        track(gavel, run, table)
        state = json.loads((run / "trackers/mlflow.json").read_text())
        # Killed before it was noted that anything was sent.
        noted = {key: state[key] for key in ("target", "id", "since")}
        (run / "trackers/mlflow.json").write_text(json.dumps(noted))
        track(gavel, run, table)
        assert json.loads((run / "trackers/mlflow.json").read_text())["remote"] == state["remote"]
        resumed(run)
        track(gavel, run, table)
        experiment = request(f"{api}/experiments/get-by-name?experiment_name=real%20runs")["experiment"]["experiment_id"]
        (found,) = request(f"{api}/runs/search", {"experiment_ids": [experiment]})["runs"]
        assert found["info"]["status"] == "FINISHED" and found["info"]["run_name"] == run.name, found["info"]
        params = {param["key"]: param["value"] for param in found["data"]["params"]}
        assert params["train.learning_rate"] == "0.001" and params["chat.judge.secret"] == "…", params
        run_id = found["info"]["run_id"]
        history = request(f"{api}/metrics/get-history?run_id={run_id}&metric_key=reward/mean&max_results=1000")["metrics"]
        assert [row["step"] for row in history] == list(range(1, STEPS + 2)), len(history)
        assert [row["value"] for row in history] == [step / 7 for step in range(1, STEPS + 1)] + [0.5]
        assert request(f"{api}/metrics/get-history?run_id={run_id}&metric_key=val/openai/gsm8k_4")["metrics"]
        (artifact,) = request(f"{api}/artifacts/list?run_id={run_id}")["files"]
        assert artifact["path"] == "config.toml", artifact
        return urllib.request.urlopen(f"{url}/version").read().decode()


def trackio(gavel, bins, run, work):
    program = "import time, trackio; shown = trackio.show(open_browser=False, block_thread=False); print(shown, flush=True); time.sleep(3600)"
    log, env = work / "trackio.log", {**os.environ, "TRACKIO_DIR": str(work / "trackio"), "GRADIO_SERVER_PORT": str(free_port())}
    python = tool("trackio", bins).rsplit("/", 1)[0] + "/python"

    def address():
        return re.search(r"(http://[0-9.a-z]+:\d+)/?\?[^ ]*write_token=([\w-]+)", log.read_text())

    with Server([python, "-c", program], address, log, env=env):
        url, token = address().groups()
        table = f'{{ kind = "trackio", url = "{url}", project = "real", api_key_env = "REAL_TOKEN" }}'
        track(gavel, run, table, {"REAL_TOKEN": "wrong-token"}, fails=True)
        told = track(gavel, run, table, {"REAL_TOKEN": token})
        assert token not in told
        state = json.loads((run / "trackers/trackio.json").read_text())
        (run / "trackers/trackio.json").write_text(json.dumps({**state, "last": None, "end": None}))
        track(gavel, run, table, {"REAL_TOKEN": token})
        read = (
            "import json, trackio; run = trackio.Api().runs('real')[0];"
            "from trackio.sqlite_storage import SQLiteStorage as S;"
            "print(json.dumps([run.name, S.get_logs('real', run.name)], default=str))"
        )
        shown = subprocess.run([python, "-c", read], capture_output=True, text=True, env=env)
        assert shown.returncode == 0, shown
        name, logs = json.loads(shown.stdout.splitlines()[-1])
        assert name == run.name and [row["step"] for row in logs] == list(range(1, STEPS + 1)), len(logs)
        assert all(row["reward/mean"] == row["step"] / 7 for row in logs)
        return subprocess.run([python, "-c", "import trackio; print(trackio.__version__)"], capture_output=True, text=True).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gavel", required=True)
    parser.add_argument("--bin", action="append", required=True)
    parser.add_argument("only", nargs="*", help="wandb, mlflow, trackio; all by default")
    args = parser.parse_args()
    gavel, failed = os.path.abspath(args.gavel), False
    for check in (wandb, mlflow, trackio):
        if args.only and check.__name__ not in args.only:
            continue
        with tempfile.TemporaryDirectory() as work:
            work = pathlib.Path(work)
            run = work / "runs" / "demo"
            write_run(run)
            try:
                print(f"ok: {check.__name__}: {check(gavel, args.bin, run, work)}", flush=True)
            except AssertionError as error:
                failed = True
                print(f"FAILED: {check.__name__}: line {error.__traceback__.tb_next.tb_lineno}: {error}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
