import asyncio
import unittest
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Optional

from gavel import Credit, InvalidInput, Message, Reference, Sample, Score, Trajectory, Unavailable, abstain, chat, exports
from gavel import NotCalled, NoVerdict, asyncs, judger, params, reward, taskset
from gavel.testing import scripted_chat
from gavel.trl import from_trl
from gavel.verdict import as_verdict
from gavel.verl import from_verl


class Fresh(unittest.TestCase):
    def setUp(self) -> None:
        exports.exported.clear()


class Verdicts(unittest.TestCase):
    def test_what_a_reward_may_return(self) -> None:
        self.assertEqual(as_verdict(True), Score(1.0))
        self.assertEqual(as_verdict({"score": 0.5, "acc": True, "pred": "7", "none": None}), Score(0.5, {"acc": 1.0}, "pred: 7"))
        self.assertEqual(as_verdict(abstain("no")), abstain("no"))

    def test_what_the_contract_has_as_text_and_whole_numbers(self) -> None:
        self.assertEqual(as_verdict(abstain(ValueError("no"))), abstain("no"))  # type: ignore[arg-type]
        self.assertEqual(as_verdict(Score(1, {7: 1}, 3.5)), Score(1.0, {"7": 1.0}, "3.5"))  # type: ignore[dict-item, arg-type]
        self.assertEqual(as_verdict(abstain("\ud800")), abstain("?"))
        payload = {"steps": [1.5, {"a": None}]}
        self.assertEqual(as_verdict(Score(1, payload=payload)), Score(1.0, payload=payload))
        credit = as_verdict(Score(1, credit=[Credit(True, 0, 1, 2, 1)]))
        self.assertEqual(credit, Score(1.0, credit=[Credit(1, 0, 1, 2, 1.0)]))

    def test_what_it_may_not(self) -> None:
        for value, words in [
            (None, "None was returned"),
            ("1", "not the text '1'"),
            (float("nan"), "must be finite"),
            ({"acc": 1}, "no `score` (its keys: `acc`)"),
            (Score(1, {"m": float("inf")}), "the metric `m`"),
            (object(), "not object"),
            (Score(1, payload=[1]), "the `payload` of a score must be a dict, not list"),  # type: ignore[arg-type]
            (Score(1, credit=[Credit(0, 0, 0, 1.5, 1)]), "cannot be interpreted as an integer"),  # type: ignore[arg-type]
            (Score(1, credit=[Credit(0, -1, 0, 1, 1)]), "the `message` of a credit"),
            (Score(1, credit=[Credit(0, 0, 0, 1, float("nan"))]), "the `value` of a credit"),
        ]:
            with self.subTest(value=value), self.assertRaises((TypeError, ValueError)) as raised:
                as_verdict(value)
            self.assertIn(words, str(raised.exception))


class PriorVerdicts(unittest.TestCase):
    def test_a_test_says_what_other_rewards_said(self) -> None:
        given = {"a": 0.5, "b": {"score": 1, "m": 2, "why": "x"}, "c": abstain("no"), "d": NotCalled(), "e": NoVerdict()}
        sample = Sample("42", verdicts=given)
        self.assertEqual(sample.verdict("a"), Score(0.5))
        self.assertEqual(sample.verdict("b"), Score(1.0, {"m": 2.0}, "why: x"))
        self.assertEqual([sample.verdict(name) for name in "cde"], [abstain("no"), NotCalled(), NoVerdict()])
        self.assertIsNone(sample.verdict("f"))
        self.assertIsNone(Sample("42").verdict("a"))


@dataclass
class Inner:
    bytes: int = 0


@dataclass
class Params:
    prefix: str
    inner: Inner = field(default_factory=Inner)
    mode: Literal["a", "b"] = "a"
    limit: Optional[float] = None
    words: list[str] = field(default_factory=list)


class Parameters(unittest.TestCase):
    def test_they_are_read_by_type(self) -> None:
        read = params.read(Params, {"prefix": "x", "inner": {"bytes": 3}, "limit": 1, "words": ["a"]})
        self.assertEqual(read, Params("x", Inner(3), "a", 1.0, ["a"]))

    def test_wrong_ones_are_named(self) -> None:
        for values, words in [
            ({}, "missing parameter `prefix`"),
            ({"prefix": 1}, "parameter `prefix`: expected str, not 1"),
            ({"prefx": ""}, "unknown parameter `prefx`, expected one of `prefix`"),
            ({"prefix": "", "inner": {"bytes": "x"}}, "parameter `inner.bytes`: expected int, not 'x'"),
            ({"prefix": "", "inner": {"bytes": True}}, "parameter `inner.bytes`: expected int"),
            ({"prefix": "", "mode": "c"}, "parameter `mode`: expected one of 'a', 'b'"),
            ({"prefix": "", "words": ["a", 1]}, "parameter `words[1]`: expected str"),
        ]:
            with self.subTest(values=values), self.assertRaises(params.ParameterError) as raised:
                params.read(Params, values)
            self.assertIn(words, str(raised.exception))


class Decorators(Fresh):
    def test_a_function_stays_what_it_is(self) -> None:
        @reward(pure=True)
        def score(sample: Sample) -> float:
            return float(len(sample.response))

        self.assertEqual(score(Sample("abc")), 3)
        self.assertEqual(exports.exported["reward"].call(None, sample=Sample("ab"), reference=None), 2)

    def test_a_length_may_be_any_callable(self) -> None:
        for length in (lambda: 7, partial(len, "of seven"[1:]), lambda params: params["rows"], partial(lambda a, p: a + p["rows"], 0)):
            exports.exported.clear()
            taskset(length=length)(lambda index: {})
            of_params = exports.exported["taskset"].length
            assert callable(of_params)
            self.assertEqual(of_params({"rows": 7}), 7)

    def test_wrong_functions_are_refused(self) -> None:
        with self.assertRaisesRegex(TypeError, "takes `row`: a judger takes any of `samples`"):
            judger(lambda row: [])
        with self.assertRaisesRegex(TypeError, "must be a dataclass or a dict"):

            @reward
            def score(params: int) -> float:
                return 0

        with self.assertRaisesRegex(TypeError, "is async"):

            @taskset
            async def get(index: int) -> dict[str, Any]:
                return {}


class Data(unittest.TestCase):
    def test_a_sample_of_messages(self) -> None:
        sample = Sample([{"role": "assistant", "content": "a"}, {"role": "tool", "content": "b"}], prompt="p")
        self.assertEqual((sample.response, sample.trajectories[0].tool_turns, sample.prompt[0].text), ("a", 1, "p"))
        self.assertEqual(Message.of({"role": "user", "content": [{"type": "text", "text": "x"}]}).text, "x")
        self.assertEqual(Trajectory("x", finish_reason="length").finish_reason, "length")

    def test_credit_is_where_the_response_stands(self) -> None:
        def places(answer: str, *finals: str) -> list[tuple[int, int, int, int]]:
            said = [{"role": "assistant", "content": final} for final in finals]
            sample = Sample(answer=answer, trajectories=[Trajectory([call, read, final]) for final in said])
            return [(it.trajectory, it.message, it.start, it.end) for it in sample.credit(1, 2, 0.5)]

        call = {"role": "assistant", "content": "I call", "tool_calls": [{"function": {"name": "f"}}]}
        read = {"role": "tool", "content": "Answer: 6"}
        self.assertEqual(places("Answer: 6", "Answer: 5", "Answer: 6", "1"), [(1, 2, 1, 2)])
        self.assertEqual(places("Answer: 6", "Answer: 6", "7", "Answer: 6"), [(0, 2, 1, 2), (2, 2, 1, 2)])
        self.assertEqual(places("I call", "I call", "7"), [(0, 2, 1, 2)])
        self.assertEqual(places("the é 7", "Final Answer: the é 7\n"), [(0, 2, 15, 16)])
        self.assertEqual(places("7", "é 7. Final Answer: 7\n"), [(0, 2, 21, 22)])
        nowhere = [("7", ["7 or 7."]), ("7", ["so 7", "hence 7"]), ("aa", ["aaa."]), ("8", ["7"]), ("", ["7"])]
        for answer, finals in nowhere:
            with self.assertRaisesRegex(InvalidInput, "not the text of one message"):
                places(answer, *finals)

    def test_a_reference_is_the_row(self) -> None:
        reference = Reference({"reward_model": {"ground_truth": [1, 2]}, "level": None})
        self.assertEqual((reference.ground_truth, reference.ground_truth_value), ("[1,2]", [1, 2]))
        self.assertEqual((list(reference), reference["level"], reference.get("x", 3)), (["reward_model", "level"], None, 3))
        with self.assertRaisesRegex(InvalidInput, "no column `x` \\(its columns: reward_model, level\\)"):
            reference["x"]
        with self.assertRaises(InvalidInput):
            Reference().require_ground_truth()


class Chat(unittest.TestCase):
    def test_replies_come_in_order(self) -> None:
        with scripted_chat({"judge": ["a", Unavailable("busy")]}) as asked:
            self.assertEqual(chat.ask("judge", "?", temperature=0).text, "a")
            with self.assertRaises(Unavailable):
                chat.ask("judge", "?")
        self.assertEqual(asked[0].options, {"temperature": 0})
        with self.assertRaisesRegex(RuntimeError, "no chat here"):
            chat.ask("judge", "?")


class Wrapped(Fresh):
    def test_verl(self) -> None:
        async def compute_score(data_source: str, solution_str: str, ground_truth: Any, extra_info: Any, k: int = 1) -> Any:
            await asyncio.gather(asyncio.sleep(0), asyncio.to_thread(lambda: None))
            return {"score": k, "pred": solution_str, "index": extra_info["index"]}

        score = from_verl(compute_score)
        row = Reference(answer="7", extra_info={"index": 3})
        self.assertEqual(score(Sample("x"), row, {"k": 2}), {"score": 2, "pred": "x", "index": 3})
        check = exports.exported["reward"].check_params
        assert check is not None
        with self.assertRaisesRegex(params.ParameterError, "unexpected keyword argument 'j'"):
            check({"j": 1})

    def test_a_row_that_a_function_cannot_score_is_the_fault_of_the_row(self) -> None:
        def compute_score(data_source: str, solution_str: str, ground_truth: Any, extra_info: Any) -> float:
            return float(solution_str == ground_truth)

        def right(completions: Any, solution: Any, bonus: float = 0.0, **_: Any) -> Any:
            return [float(c == s) + bonus for c, s in zip(completions, solution)]

        with self.assertRaisesRegex(InvalidInput, "the row has no ground truth: expected `reward_model.ground_truth`"):
            from_verl(compute_score)(Sample("x"), Reference(reward_model={"ground_truth": None}), {})
        score = from_trl(right)
        lacks = r"the row has no column `solution`, which `right` takes \(its columns: prompt, answer\)"
        with self.assertRaisesRegex(InvalidInput, lacks):
            score(Sample("4"), Reference(prompt="?", answer="4"), {})
        self.assertEqual(score(Sample("4"), Reference(prompt="?", solution="4"), {"bonus": 1.0}), 2.0)
        # A parameter of the run takes the place of a column.
        self.assertEqual(score(Sample("4"), Reference(prompt="?"), {"solution": ["4"]}), 1.0)

    def test_promises_about_a_wrapped_function_are_those_of_the_reward(self) -> None:
        for library in (from_verl, from_trl):
            exports.exported.clear()
            library(lambda **_: 1.0, pure=True, score_range=(0, 1))
            export = exports.exported["reward"]
            self.assertEqual((export.pure, export.score_range), (True, (0, 1)))

    def test_trl(self) -> None:
        def ends(prompts: Any, completions: Any, answer: Any, **_: Any) -> Any:
            return [None if a is None else float(c[-1]["content"].endswith(a)) for c, a in zip(completions, answer)]

        score = from_trl(ends)
        prompt = [{"role": "user", "content": "?"}]
        self.assertEqual(score(Sample("it is 4", prompt=prompt), Reference(prompt=prompt, answer="4"), {}), 1.0)
        self.assertEqual(score(Sample("4"), Reference(prompt=prompt, answer=None), {}), abstain("the function returned None"))
        check = exports.exported["reward"].check_params
        assert check is not None
        for name in ("completions", "completion_ids", "log_metric"):
            with self.assertRaisesRegex(params.ParameterError, f"`{name}` is not a parameter"):
                check({name: 1})

    def test_trl_without_tokens(self) -> None:
        def count(completion_ids: Any, **_: Any) -> Any:
            return [len(ids) for ids in completion_ids]

        with self.assertRaisesRegex(SystemExit, "`count` takes `completion_ids`.*\nhint: "):
            from_trl(count)

    def test_what_an_async_function_left_behind_is_ended(self) -> None:
        ended = []

        async def forever() -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                ended.append("task")

        async def numbers() -> Any:
            try:
                yield 1
                yield 2
            finally:
                ended.append("generator")

        async def first() -> int:
            self.task = asyncio.ensure_future(forever())
            self.numbers = numbers()
            await asyncio.sleep(0)
            return await anext(self.numbers)

        self.assertEqual(asyncs.run(first()), 1)
        self.assertEqual(ended, ["task", "generator"])
