"""Answers the requests of the plugin `service` with the verdicts of a reward."""

from __future__ import annotations

import asyncio
import base64
import hmac
import inspect
import json
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any

from .reference import Reference
from .sample import Media, Sample, Trajectory
from .service_messages import Answer, Request, answer, error
from .verdict import Abstained, InvalidInput, Score, Unavailable, as_verdict

__all__ = ["PROTOCOL", "Judge", "handler"]

PROTOCOL = "gavel-reward/1"


def handler(judge: Callable[[bytes], Answer], key: str | None) -> Callable[[Request], Answer | Callable[[], Answer]]:
    """A function that answers a request, or gives the work that answers it.
    Requests must bring the `key`, if there is one."""

    def handle(request: Request) -> Answer | Callable[[], Answer]:
        if request.method == "GET":
            return answer(HTTPStatus.OK, {"protocol": PROTOCOL})
        given = request.headers.get("authorization", "")
        if key is not None and not hmac.compare_digest(given.encode(), f"Bearer {key}".encode()):
            return error(HTTPStatus.UNAUTHORIZED, "the key is missing or another one")
        return partial(judge, request.body)

    return handle


class Judge:
    """Makes an answer of the body of a request, by a function of the user."""

    def __init__(self, score: Callable[..., Any]) -> None:
        self.score = score
        self.takes = tuple(inspect.signature(score).parameters)
        for name in self.takes:
            if name not in ("sample", "samples", "reference"):
                raise TypeError(f"`score` takes `{name}`: it can take `sample` or `samples`, and `reference`")

    def __call__(self, body: bytes) -> Answer:
        try:
            asked = json.loads(body)
            if asked["protocol"] != PROTOCOL:
                raise ValueError(f"the protocol is {asked['protocol']!r}, and this server speaks {PROTOCOL!r}")
            samples = [_sample(sample) for sample in asked["samples"]]
            reference = Reference(asked["reference"])
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as wrong:
            return error(HTTPStatus.BAD_REQUEST, f"the body cannot be read: {wrong!r}")
        return answer(HTTPStatus.OK, {"verdicts": _judge(self.score, self.takes, samples, reference)})


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
    except InvalidInput as why:
        return {"invalid_input": str(why)}
    except Unavailable as why:
        return {"unavailable": str(why)}
    except BaseException as why:  # Also `sys.exit()`, which must not end the server.
        traceback.print_exc()
        return {"internal": f"{type(why).__name__}: {why}"}


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
