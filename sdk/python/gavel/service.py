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
import asyncio
import base64
import hmac
import importlib.util
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from .reference import Reference
from .sample import Media, Sample, Trajectory
from .verdict import Abstained, InvalidInput, Score, Unavailable, as_verdict
from .verl import scorer

__all__ = ["PROTOCOL", "serve", "server"]

PROTOCOL = "gavel-reward/1"


def serve(
    score: Callable[..., Any], *, host: str = "127.0.0.1", port: int = 8000, api_key_env: str | None = None
) -> None:
    """Serves a reward until the process is ended. `score` and the other
    arguments are those of `server`."""
    with server(score, host=host, port=port, api_key_env=api_key_env) as serving:
        print(f"serving {getattr(score, '__name__', 'score')} at http://{host}:{serving.server_port}", file=sys.stderr)
        try:
            serving.serve_forever()
        except KeyboardInterrupt:
            pass


def server(
    score: Callable[..., Any], *, host: str = "127.0.0.1", port: int = 0, api_key_env: str | None = None
) -> ThreadingHTTPServer:
    """A server of a reward, which is not started. With the port 0, the system
    chooses one: `server_port`.

    `score` takes `sample` and `reference`, or one of them, and returns a number,
    a dict with `score`, a `Score` or `abstain("why")`. It is called in a thread
    for each request; one that takes `samples` gets a whole group and returns a
    list. The variable `api_key_env` has the key that requests must bring.
    """
    takes = tuple(inspect.signature(score).parameters)
    for name in takes:
        if name not in ("sample", "samples", "reference"):
            raise TypeError(f"`score` takes `{name}`: it can take `sample` or `samples`, and `reference`")
    key = None
    if api_key_env is not None:
        key = os.environ.get(api_key_env)
        if not key:
            raise ValueError(f"api_key_env: the variable {api_key_env} is not set")

    class Handler(_Handler):
        def judge(self, samples: list[Sample], reference: Reference) -> list[dict[str, Any]]:
            return _judge(score, takes, samples, reference)

    Handler.key = key
    return ThreadingHTTPServer((host, port), Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    key: str | None = None

    def judge(self, samples: list[Sample], reference: Reference) -> list[dict[str, Any]]:
        raise NotImplementedError

    def do_GET(self) -> None:
        self._answer(HTTPStatus.OK, {"protocol": PROTOCOL})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        given = self.headers.get("authorization") or ""
        if self.key is not None and not hmac.compare_digest(given.encode(), f"Bearer {self.key}".encode()):
            return self._answer(HTTPStatus.UNAUTHORIZED, {"error": "the key is missing or another one"})
        try:
            asked = json.loads(body)
            if asked["protocol"] != PROTOCOL:
                raise ValueError(f"the protocol is {asked['protocol']!r}, and this server speaks {PROTOCOL!r}")
            samples = [_sample(sample) for sample in asked["samples"]]
            reference = Reference(asked["reference"])
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            return self._answer(HTTPStatus.BAD_REQUEST, {"error": f"the body cannot be read: {error!r}"})
        self._answer(HTTPStatus.OK, {"verdicts": self.judge(samples, reference)})

    def _answer(self, status: HTTPStatus, body: Mapping[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing about requests that were answered."""


def _judge(
    score: Callable[..., Any], takes: Sequence[str], samples: list[Sample], reference: Reference
) -> list[dict[str, Any]]:
    def call(**arguments: Any) -> Any:
        value = score(**{name: arguments[name] for name in takes})
        return asyncio.run(value) if inspect.iscoroutine(value) else value

    if "samples" in takes:

        def all_of_them() -> list[dict[str, Any]]:
            values = list(call(samples=samples, reference=reference))
            if len(values) != len(samples):
                raise ValueError(f"{len(values)} verdicts were returned about {len(samples)} samples")
            return [_written(value) for value in values]

        verdicts = _or_failure(all_of_them)
        return verdicts if isinstance(verdicts, list) else [verdicts] * len(samples)
    return [_or_failure(lambda: _written(call(sample=sample, reference=reference))) for sample in samples]


def _or_failure(judge: Callable[[], Any]) -> Any:
    try:
        return judge()
    except InvalidInput as error:
        return {"invalid_input": str(error)}
    except Unavailable as error:
        return {"unavailable": str(error)}
    except Exception as error:
        traceback.print_exc()
        return {"internal": f"{type(error).__name__}: {error}"}


def _written(value: Any) -> dict[str, Any]:
    verdict = as_verdict(value)
    if isinstance(verdict, Abstained):
        return {"abstained": verdict.reason}
    return _written_score(verdict)


def _written_score(score: Score) -> dict[str, Any]:
    written: dict[str, Any] = {"score": score.value, "metrics": score.metrics}
    if score.note is not None:
        written["note"] = score.note
    if score.credit:
        written["credit"] = [vars(part) for part in score.credit]
    return written


def _sample(sent: Mapping[str, Any]) -> Sample:
    return Sample(
        trajectories=[
            Trajectory([_message(message) for message in trajectory.pop("messages")], **trajectory)
            for trajectory in sent["trajectories"]
        ],
        prompt=[_message(message) for message in sent["prompt"]],
        task_id=sent["task_id"],
        data_source=sent["data_source"],
        group_index=sent["group_index"],
    )


def _message(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    if isinstance(content, list):
        content = [_media(part) if part["type"] == "media" else part for part in content]
    return {**message, "content": content}


def _media(part: Mapping[str, Any]) -> Media:
    return Media(part["media_type"], base64.b64decode(part["data"]))


def _main() -> None:
    parser = argparse.ArgumentParser(prog="python -m gavel.service", description="Serves a reward function to Gavel.")
    parser.add_argument("function", metavar="FILE.py:FUNCTION", help="the reward, such as rewards.py:compute_score")
    parser.add_argument("--verl", action="store_true", help="it takes data_source, solution_str, ground_truth, extra_info")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--api-key-env", metavar="NAME", help="the variable with the key that requests must bring")
    given = parser.parse_args()
    path, _, name = given.function.rpartition(":")
    if not path or not Path(path).exists():
        parser.error(f"name a file and a function, such as rewards.py:compute_score, not {given.function!r}")
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None:
        parser.error(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(Path(path).resolve().parent))
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if function is None:
        parser.error(f"{path} has no function `{name}`")
    score = scorer(function) if given.verl else function
    serve(score, host=given.host, port=given.port, api_key_env=given.api_key_env)


if __name__ == "__main__":
    _main()
