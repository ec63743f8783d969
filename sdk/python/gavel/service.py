"""Serves a reward that cannot be a component: one that needs C extensions, a
GPU or a program of yours. A run asks it with `[[reward]] url = "http://…"`.

    from gavel import Reference, Sample, service

    def score(sample: Sample, reference: Reference) -> float:
        return float(sample.response == reference.ground_truth)

    service.serve(score, port=8000)

verl's reward functions need no change:

    python -m gavel.service rewards.py:compute_score --verl --port 8000
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from . import service_limits, service_workers
from .service_messages import Answer
from .service_protocol import PROTOCOL, Judge, handler
from .service_server import Server
from .service_workers import Workers

__all__ = ["PROTOCOL", "serve", "server"]

THREADS = 256


def serve(
    score: Callable[..., Any],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    api_key_env: str | None = None,
    threads: int = THREADS,
) -> None:
    """Serves a reward until the process gets SIGTERM or SIGINT; requests that
    have arrived are answered. The arguments are the same as for `server`."""
    _serve(server(score, host=host, port=port, api_key_env=api_key_env, threads=threads), score, host)


def server(
    score: Callable[..., Any],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    api_key_env: str | None = None,
    threads: int = THREADS,
) -> Server:
    """A server of a reward, which is not started. With the port 0, the system
    chooses one: `server_port`.

    `score` takes `sample` and `reference`, or one of them, and returns a number,
    a dict with `score`, a `Score` or `abstain("why")`. It is called in `threads`
    threads, a request in each; one that takes `samples` gets a whole group and
    returns a list. The variable `api_key_env` has the key that requests must
    bring.
    """
    judge = Judge(score)
    return _server(judge, ThreadPoolExecutor(threads), threads, host, port, api_key_env)


def _server(
    judge: Callable[[bytes], Answer], pool: Executor, at_once: int, host: str, port: int, api_key_env: str | None
) -> Server:
    key = None
    if api_key_env is not None:
        key = os.environ.get(api_key_env)
        if not key:
            raise ValueError(f"api_key_env: the variable {api_key_env} is not set")
    return Server((host, port), handler(judge, key), pool, at_once)


def _serve(serving: Server, score: Callable[..., Any], host: str) -> None:
    service_limits.raise_open_files()
    with serving:
        print(f"serving {getattr(score, '__name__', 'score')} at http://{host}:{serving.server_port}", file=sys.stderr)
        serving.serve_forever()


def _main() -> None:
    parser = argparse.ArgumentParser(prog="python -m gavel.service", description="Serves a reward function to Gavel.")
    parser.add_argument("function", metavar="FILE.py:FUNCTION", help="the reward, such as rewards.py:compute_score")
    parser.add_argument(
        "--verl", action="store_true", help="it takes data_source, solution_str, ground_truth, extra_info"
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--api-key-env", metavar="NAME", help="the variable with the key that requests must bring")
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--threads", type=_count, default=THREADS, help=f"requests that are judged at once ({THREADS})")
    ways.add_argument("--workers", type=_count, help="judge in so many processes, for a function that computes")
    given = parser.parse_args()
    path, _, name = given.function.rpartition(":")
    if not path or not Path(path).exists():
        parser.error(f"name a file and a function, such as rewards.py:compute_score, not {given.function!r}")
    try:
        score = service_workers.load(path, name, given.verl)
    except ValueError as error:
        parser.error(str(error))
    if given.workers is None:
        serve(score, host=given.host, port=given.port, api_key_env=given.api_key_env, threads=given.threads)
        return
    Judge(score)  # Says what is wrong with the function, before a worker does.
    workers = Workers(path, name, given.verl)
    serving = _server(service_workers.judge, workers, given.workers, given.host, given.port, given.api_key_env)
    _serve(serving, score, given.host)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


if __name__ == "__main__":
    _main()
