"""Serving a reward, asked over real connections."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import os
import threading
import unittest
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

from gavel import InvalidInput, Reference, Sample, Score, Unavailable, abstain, service
from gavel.verdict import Credit
from gavel.verl import scorer

ROW = {"prompt": "2 + 2?", "answer": "4", "extra_info": {"level": 3}}


def sent(*responses: str) -> dict[str, Any]:
    """The body of a request about these responses."""
    trajectory = {"finish_reason": "stop", "prompt_tokens": 3, "response_tokens": 2, "policy_version": None}
    return {
        "protocol": service.PROTOCOL,
        "samples": [
            {
                "task_id": "7",
                "data_source": "sums",
                "group_index": index,
                "prompt": [{"role": "user", "content": "2 + 2?"}],
                "response": response,
                "trajectories": [{"messages": [{"role": "assistant", "content": response}], **trajectory}],
            }
            for index, response in enumerate(responses)
        ],
        "reference": ROW,
    }


@contextlib.contextmanager
def served(score: Callable[..., Any], **options: Any) -> Iterator[Callable[..., Any]]:
    """Serves a reward; gives a function that sends a body and returns the answer."""
    with service.server(score, **options) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()

        def ask(body: Any, **headers: str) -> Any:
            url = f"http://127.0.0.1:{server.server_port}/score"
            request = urllib.request.Request(url, json.dumps(body).encode(), headers)
            try:
                with urllib.request.urlopen(request) as response:
                    return json.load(response)["verdicts"]
            except urllib.error.HTTPError as error:
                return error.code, json.load(error)["error"]

        try:
            yield ask
        finally:
            server.shutdown()
            thread.join()


class Service(unittest.TestCase):
    def test_each_sample_gets_what_the_function_returns(self) -> None:
        def score(sample: Sample, reference: Reference) -> Any:
            match sample.response:
                case "odd":
                    raise InvalidInput("not a number")
                case "busy":
                    raise Unavailable("no worker is free")
                case "bug":
                    raise KeyError("x")
                case "skip":
                    return abstain("not mine")
                case "rich":
                    return Score(0.5, {"steps": 3}, "half", [Credit(0, 0, 0, 2, -1.0)])
            return float(sample.response == reference.require_ground_truth())

        responses = ["4", "5", "odd", "busy", "bug", "skip", "rich"]
        said = io.StringIO()
        with served(score) as ask, contextlib.redirect_stderr(said):
            verdicts = ask(sent(*responses))
        credit = {"trajectory": 0, "message": 0, "start": 0, "end": 2, "value": -1.0}
        self.assertEqual(
            verdicts,
            [
                {"score": 1.0, "metrics": {}},
                {"score": 0.0, "metrics": {}},
                {"invalid_input": "not a number"},
                {"unavailable": "no worker is free"},
                {"internal": "KeyError: 'x'"},
                {"abstained": "not mine"},
                {"score": 0.5, "metrics": {"steps": 3.0}, "note": "half", "credit": [credit]},
            ],
        )
        # The whole error goes to the log of the service.
        self.assertIn('raise KeyError("x")', said.getvalue())

    def test_a_function_may_see_the_group(self) -> None:
        def shortest(samples: list[Sample]) -> list[float]:
            least = min(len(sample.response) for sample in samples)
            return [float(len(sample.response) == least) for sample in samples]

        with served(shortest) as ask:
            self.assertEqual([verdict["score"] for verdict in ask(sent("aa", "b", "cc"))], [0.0, 1.0, 0.0])
        with served(lambda samples: [1.0]) as ask, contextlib.redirect_stderr(io.StringIO()):
            verdicts = ask(sent("a", "b"))
        self.assertEqual(verdicts, [{"internal": "ValueError: 1 verdicts were returned about 2 samples"}] * 2)

    def test_the_sample_is_the_one_that_was_sent(self) -> None:
        seen: list[tuple[Sample, Reference]] = []

        def score(sample: Sample, reference: Reference) -> float:
            seen.append((sample, reference))
            return 1.0

        body = sent("4")
        media = {"type": "media", "media_type": "image/png", "data": base64.b64encode(b"pixels").decode()}
        body["samples"][0]["prompt"][0]["content"] = [{"type": "text", "text": "What is this?"}, media]
        call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 4.50}'}}
        messages = [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "4", "tool_call_id": "1", "name": "add"},
            {"role": "assistant", "content": "4"},
        ]
        body["samples"][0]["trajectories"][0]["messages"] = messages
        with served(score) as ask:
            ask(body)
        [(sample, reference)] = seen
        self.assertEqual((sample.task_id, sample.data_source, sample.response), ("7", "sums", "4"))
        self.assertEqual(sample.prompt[0].text, "What is this?")
        self.assertEqual(sample.prompt[0].content[1].read(), b"pixels")  # type: ignore[union-attr]
        trajectory = sample.trajectories[0]
        self.assertEqual((trajectory.turns, trajectory.tool_turns, trajectory.prompt_tokens), (2, 1, 3))
        self.assertEqual(trajectory.messages[0].tool_calls[0].arguments, '{"a": 4.50}')
        self.assertEqual(reference["extra_info"]["level"], 3)

    def test_functions_of_verl_are_served_as_they_are(self) -> None:
        async def compute_score(data_source: str, solution_str: str, ground_truth: str, extra_info: Any) -> Any:
            await asyncio.sleep(0)
            return {"score": float(solution_str == ground_truth), "level": extra_info["level"]}

        with served(scorer(compute_score)) as ask:
            self.assertEqual(ask(sent("4")), [{"score": 1.0, "metrics": {"level": 3.0}}])

    def test_what_is_no_question_is_refused(self) -> None:
        with served(lambda sample: 1.0) as ask, contextlib.redirect_stderr(io.StringIO()):
            for body in [[], {}, {**sent("4"), "protocol": "gavel-reward/9"}, {**sent("4"), "samples": [{}]}]:
                status, error = ask(body)
                self.assertEqual((status, error.split(":")[0]), (400, "the body cannot be read"))
        with self.assertRaisesRegex(TypeError, "`score` takes `response`: it can take"):
            service.server(lambda response: 1.0)

    def test_a_key_is_asked_for(self) -> None:
        os.environ["GAVEL_TEST_SERVICE_KEY"] = "sk-1"
        key = "GAVEL_TEST_SERVICE_KEY"
        with served(lambda sample: 1.0, api_key_env=key) as ask, contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(ask(sent("4"))[0], 401)
            self.assertEqual(ask(sent("4"), authorization="Bearer sk-2")[0], 401)
            self.assertEqual(ask(sent("4"), authorization="Bearer sk-1"), [{"score": 1.0, "metrics": {}}])
        with self.assertRaisesRegex(ValueError, "the variable GAVEL_TEST_NO_KEY is not set"):
            service.server(lambda sample: 1.0, api_key_env="GAVEL_TEST_NO_KEY")


if __name__ == "__main__":
    unittest.main()
