"""Agents over a scripted policy: the SDK and its examples."""

from __future__ import annotations

import importlib
import sys
import unittest
from pathlib import Path
from typing import Any

from gavel import Message, Task, ToolCall, agent, policy
from gavel.exports import exported
from gavel.testing import scripted_policy

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))


def example(name: str) -> Any:
    exported.pop("agent", None)
    return importlib.import_module(name)


def add(left: int, right: int) -> int:
    """Adds two numbers."""
    return left + right


def calling(arguments: str) -> Message:
    return Message("assistant", [""], [ToolCall("1", "add", arguments)])


class Conversations(unittest.TestCase):
    def test_a_fork_shares_only_the_history(self) -> None:
        with scripted_policy(["one", "left", policy.Exhausted("no tokens are left")]) as conversations:
            first = policy.Conversation("Say.")
            first.generate()
            left, right = first.fork("left"), first.fork("right")
            left.append("And?")
            turns = policy.generate_all([left, right])
        assert isinstance(turns[0], policy.Turn) and turns[0].text == "left"
        assert isinstance(turns[1], policy.Exhausted)
        self.assertEqual([each.speaker for each in conversations], ["", "left", "right"])
        self.assertEqual(conversations[0].texts, ["Say.", "one"])
        self.assertEqual(conversations[1].texts, ["Say.", "one", "And?", "left"])

    def test_an_error_is_raised_where_one_turn_is_asked_for(self) -> None:
        with scripted_policy([policy.InvalidRequest("no")]), self.assertRaisesRegex(policy.InvalidRequest, "no"):
            policy.Conversation("Say.").generate()
        with self.assertRaisesRegex(RuntimeError, "scripted_policy"):
            policy.Conversation("Say.")

    def test_an_agent_takes_its_task_and_its_parameters(self) -> None:
        exported.pop("agent", None)
        with self.assertRaisesRegex(TypeError, "an? agent takes any of `task`, `params`"):
            agent(lambda sample: "")


class Examples(unittest.TestCase):
    def test_react_acts_until_it_answers(self) -> None:
        act = 'Thought: I add.\nAction: add\nAction Input: {"left": 2, "right": 3}\nObservation:'
        with scripted_policy(["I wonder.", act, "Final Answer: 5"], {"add": add}) as (conversations):
            self.assertEqual(example("react").attempt(Task("2 + 3?")), "5")
        texts = conversations[0].texts
        self.assertIn("- add: Adds two numbers.", texts[0])
        self.assertEqual(texts[3], "Observation: that was neither an action nor a final answer")
        self.assertEqual(texts[5], "Observation: 5")

    def test_best_of_n_takes_the_answer_that_the_policy_chooses(self) -> None:
        module = example("best_of_n")
        with scripted_policy(["4", "5", "Answer 2 is right: 2"]) as conversations:
            self.assertEqual(module.attempt(Task("2 + 3?"), module.Params(n=2)), "5")
        self.assertEqual([each.speaker for each in conversations], ["answer", "answer", "verify"])
        with scripted_policy(["4", policy.Exhausted("no turn is left")]):
            self.assertEqual(module.attempt(Task("2 + 3?"), module.Params(n=2)), "4")
        with scripted_policy([policy.Exhausted(""), policy.Exhausted("")]), self.assertRaisesRegex(RuntimeError, "no answer"):
            module.attempt(Task("2 + 3?"), module.Params(n=2))
        with self.assertRaisesRegex(ValueError, "at least 2"):
            module.Params(n=1)

    def test_speakers_of_a_debate_hear_each_other(self) -> None:
        module = example("debate")
        with scripted_policy(["5", "6", "Still 5", "5 then"]) as conversations:
            self.assertEqual(module.attempt(Task("2 + 3?"), module.Params()), "Still 5")
        self.assertTrue(conversations[0].texts[2].startswith("Somebody else answers:\n\n6"))
        self.assertEqual(conversations[1].texts[3], "5 then")

    def test_a_summary_begins_a_new_context(self) -> None:
        module = example("summarize")
        turns = [calling('{"left": 2, "right": 3}'), "It was 5.", "5"]
        # 1000 tokens are left.
        for reserve, read, carried in [(600, "5", ""), (1000, module.LEFT_OUT, "\n\nA tool answered:\n\n5")]:
            with scripted_policy(turns, {"add": add}) as conversations:
                self.assertEqual(module.attempt(Task("2 + 3?"), module.Params(reserve=reserve)), "5")
            self.assertEqual(len(conversations), 2)
            self.assertEqual(conversations[0].texts[2:4], [read, module.ASK])
            found = f"What you found out so far:\n\nIt was 5.{carried}"
            self.assertEqual(conversations[1].texts[:2], ["2 + 3?", found])

    def test_a_call_that_cannot_be_read_is_answered(self) -> None:
        module = example("summarize")
        written = policy.Turn(Message("assistant", ["<tool_call>{</tool_call>"]), malformed_calls=["it is not JSON"])
        with scripted_policy([written, "5"]) as conversations:
            self.assertEqual(module.attempt(Task("2 + 3?"), module.Params()), "5")
        self.assertEqual(conversations[0].texts[2], "error: the call cannot be read: it is not JSON")


if __name__ == "__main__":
    unittest.main()
