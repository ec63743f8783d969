"""What an honest client of `gavel serve` waits while others send bodies that would cost much. The goal is twice the time
that it waits alone.

    cargo xtask demo
    python host/serve/benches/hostile_bodies.py

The server has the demo's model, and the honest client asks for 16 tokens at a time. Twenty connections send bodies of
four kinds, again and again. Their process has the lowest priority, since it would be on other machines:

stop texts   32 prompts with 128 responses each and a stop text of 1 MB
long prompt  a prompt of 60 MB
many         8,000 prompts with prompt_logprobs
unknown      an unknown field of 60 MB

All of them are refused. With `--accepted`, they are two kinds that are dear and are answered:

stops        32 prompts with 128 responses each and 16 stop texts of 1 KB
prompts      4,096 prompts with prompt_logprobs

alone    the honest client's milliseconds without them, at the median, at p95 and at most
beside   the same beside them, and how many bodies were answered meanwhile
"""
import argparse
import collections
import http.client
import json
import multiprocessing
import os
import statistics
import subprocess
import threading
import time
from pathlib import Path

root = Path(__file__).resolve().parents[3]
MB = 1 << 20


def newest_model():
    """The last checkpoint of the demo; None without one."""
    checkpoints = sorted((root / "runs/demo/checkpoints").glob("step-*"))
    return checkpoints[-1] if checkpoints else None


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gavel", type=Path, default=root / "target/release/gavel")
    parser.add_argument("--model", type=Path, default=newest_model(), help="a checkpoint (the demo's last)")
    parser.add_argument("--requests", type=int, default=100, help="requests of the honest client (100)")
    parser.add_argument("--bodies", type=int, default=20, help="connections that send bodies (20)")
    parser.add_argument("--accepted", action="store_true", help="bodies that are answered, and not refused")
    parser.add_argument("--json", action="store_true", help="the results as JSON")
    given = parser.parse_args()
    if given.model is None:
        parser.error("no checkpoint in runs/demo: run `cargo xtask demo`, or name one with --model")
    return given


def start(given):
    """The server, and its address."""
    command = [given.gavel.resolve(), "serve", "-m", given.model.resolve(), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    host, port = server.stdout.readline().split("http://")[1].split("/")[0].split(":")
    return server, (host, int(port))


def post(address, body):
    """The status and the first bytes of the answer."""
    connection = http.client.HTTPConnection(*address, timeout=600)
    connection.request("POST", "/v1/completions", body)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, text


def bodies(accepted):
    """What is sent, by the kind."""
    text = lambda **fields: json.dumps(fields).encode()
    if accepted:
        return [
            ("stops", text(prompt=["a"] * 32, n=128, stop=["x" * 1024] * 16, max_tokens=16)),
            ("prompts", text(prompt=["hello"] * 4096, prompt_logprobs=0, max_tokens=1)),
        ]
    return [
        ("stop texts", text(prompt=["a"] * 32, n=128, stop="x" * MB)),
        ("long prompt", text(prompt="hello " * (10 * MB))),
        ("many", text(prompt=["hello"] * 8000, prompt_logprobs=0, max_tokens=1)),
        ("unknown", text(prompt="a", unknown="x" * (60 * MB))),
    ]


def honest(address, count):
    """The milliseconds of each of `count` requests, one after the other."""
    body = json.dumps({"prompt": "2 + 3 =", "max_tokens": 16, "ignore_eos": True}).encode()
    found = []
    for _ in range(count):
        begin = time.perf_counter()
        status, text = post(address, body)
        assert status == 200, text
        found.append(1000 * (time.perf_counter() - begin))
    return found


def summary(found):
    found = sorted(found)
    return dict(median=statistics.median(found), p95=found[int(len(found) * 0.95)], most=found[-1])


def send(address, kinds, count, has_begun, is_over, answered):
    """Sends bodies of these kinds over `count` connections until it is over. Then `answered` gets how many were answered."""
    os.nice(19)
    counts = collections.Counter()

    def repeat(kind, body):
        while not is_over.is_set():
            status, _ = post(address, body)
            counts[kind, status] += 1

    senders = [threading.Thread(target=repeat, args=kinds[number % len(kinds)]) for number in range(count)]
    for sender in senders:
        sender.start()
    has_begun.set()
    for sender in senders:
        sender.join()
    answered.put({f"{kind}: {status}": count for (kind, status), count in sorted(counts.items())})


def measure(given):
    server, address = start(given)
    try:
        honest(address, 5)
        alone = summary(honest(address, given.requests))
        has_begun, is_over, answered = multiprocessing.Event(), multiprocessing.Event(), multiprocessing.Queue()
        sent = (address, bodies(given.accepted), given.bodies, has_begun, is_over, answered)
        senders = multiprocessing.Process(target=send, args=sent)
        senders.start()
        has_begun.wait()
        beside = summary(honest(address, given.requests))
        is_over.set()
        counts = answered.get()
        senders.join()
        return dict(alone=alone, beside=beside, answered=counts)
    finally:
        server.terminate()
        server.wait()


given = arguments()
found = measure(given)
if given.json:
    print(json.dumps(found, indent=2))
else:
    print(f"{'':8}{'median':>10}{'p95':>10}{'most':>10}  ms")
    for name in ("alone", "beside"):
        row = found[name]
        print(f"{name:8}{row['median']:10.1f}{row['p95']:10.1f}{row['most']:10.1f}")
    print(f"{'times':8}" + "".join(f"{found['beside'][key] / found['alone'][key]:10.1f}" for key in found["alone"]))
    for name, count in found["answered"].items():
        print(f"{count:6} {name}")
