"""Tests of the agent itself: `python3 -m pytest`, on this machine."""

import pytest
from gavel import Message, Task, ToolCall
from gavel.testing import scripted_policy
from main import CHECK, Params, attempt


def multiply(a: int, b: int) -> int:
    """Multiplies two numbers."""
    return a * b


def test_the_policy_checks_its_answer() -> None:
    with scripted_policy(["4", "6", "RIGHT"]) as conversations:
        assert attempt(Task("2 + 4?"), Params(checks=3)) == "6"
    assert conversations[0].texts == ["2 + 4?", "4", CHECK, "6", CHECK, "RIGHT"]


def test_tools_are_called() -> None:
    calling = Message("assistant", ["I multiply."], [ToolCall("1", "multiply", '{"a": 12, "b": 12}')])
    with scripted_policy([calling, "It is 144."], {"multiply": multiply}) as conversations:
        assert attempt(Task("12 * 12?"), Params(checks=0)) == "It is 144."
    assert conversations[0].texts[2] == "144"


def test_too_many_checks_are_refused() -> None:
    with pytest.raises(ValueError, match="`checks` must be"):
        Params(checks=11)
