"""The example of a tool with a state, on the golden cases of the same tool in Rust."""

from __future__ import annotations

import importlib
import json
import sys
import unittest
from pathlib import Path
from typing import Any

from gavel import InvalidInput
from gavel.exports import exported
from gavel.tools import ToolExport

_FOLDER = Path(__file__).parent.parent
sys.path.insert(0, str(_FOLDER / "examples"))

_CASES = _FOLDER.parent.parent / "plugins" / "shop" / "cases.jsonl"


def cases() -> list[dict[str, Any]]:
    with _CASES.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    # The host checks arguments by their schema, and the SDK's part in the component parameters.
    return [row for row in rows if "calls" in row and row["case"] != "arguments that the schema refuses"]


def made_anew() -> ToolExport:
    exported.pop("tool", None)
    sys.modules.pop("shop", None)
    importlib.import_module("shop")
    made = exported["tool"]
    assert isinstance(made, ToolExport)
    return made


class Shop(unittest.TestCase):
    def test_it_answers_and_ends_as_in_rust(self) -> None:
        made = made_anew()
        self.assertEqual([function.name for function in made.functions], ["search", "add", "pay", "cancel"])
        self.assertGreater(len(cases()), 12)
        for row in cases():
            with self.subTest(row["case"]):
                self.plays(made, row)

    def plays(self, made: ToolExport, row: dict[str, Any]) -> None:
        """Plays the session of a case."""
        if any(call["expect"].get("outcome") == "failed" for call in row["calls"]):
            with self.assertRaisesRegex(InvalidInput, "`stock`"):
                made.open(None, row.get("settings", {}))
            return
        state = made.open(None, row["settings"])
        for call in row["calls"]:
            expect = call["expect"]
            if expect.get("outcome") == "called-wrongly":
                with self.assertRaises(InvalidInput) as raised:
                    made.answer(state, None, call["name"], call.get("arguments", {}))
                self.assertIn(expect["reason"].removeprefix("error: "), str(raised.exception))
            else:
                self.assertEqual(made.answer(state, None, call["name"], call.get("arguments", {})), expect["answer"])
        ended = json.loads(json.dumps(made.finish(state)))
        if "expect" in row:
            self.assertEqual(ended, row["expect"]["state"])

    def test_a_stock_that_is_none_is_refused(self) -> None:
        made, item = made_anew(), {"price": 1, "count": 1}
        nothing = "must set `stock`, and nothing else"
        no_items = "`stock` must have items with `price` and `count`"
        for settings, why in [
            ({}, nothing),
            ({"stock": {"a": item}, "till": 1}, nothing),
            ({"stock": [1]}, no_items),
            ({"stock": {"a": 1}}, no_items),
            ({"stock": {"a": {**item, "colour": 1}}}, no_items),
            ({"stock": {"a": {**item, "price": True}}}, no_items),
            ({"stock": {"a": {**item, "count": 2**32}}}, no_items),
        ]:
            with self.subTest(settings), self.assertRaisesRegex(InvalidInput, why):
                made.open(None, settings)
