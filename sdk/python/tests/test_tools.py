import unittest
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Optional

from gavel import InvalidInput, exports, final_state, schema, tool
from gavel.tools import ToolExport


@dataclass
class Params:
    limit: int = 3


def exported() -> ToolExport:
    made = exports.exported["tool"]
    assert isinstance(made, ToolExport)
    return made


class Tools(unittest.TestCase):
    def setUp(self) -> None:
        exports.exported.clear()

    def test_a_class_keeps_the_state_of_a_trajectory(self) -> None:
        @tool
        class Counter:
            def __init__(self, settings: dict[str, Any], params: Params) -> None:
                self._sum, self._limit = settings.get("from", 0), params.limit

            def add(self, by: int = 1) -> str:
                """Adds to the sum."""
                if self._sum + by > self._limit:
                    raise InvalidInput("too much")
                self._sum += by
                return self._text()

            def total(self) -> int:
                """Returns the sum."""
                return self._sum

            def _text(self) -> str:
                return f"it is {self._sum}"

        made = exported()
        self.assertEqual([function.name for function in made.functions], ["add", "total"])
        self.assertEqual((made.params, made.pure), (Params, False))
        one, other = made.open(Params(5), {"from": 3}), made.open(Params(5), {})
        self.assertEqual(made.answer(one, None, "add", {"by": 2.0}), "it is 5")
        self.assertEqual(made.answer(other, None, "total", {}), "0")
        with self.assertRaisesRegex(InvalidInput, "too much"):
            made.answer(one, None, "add", {})

    def test_a_class_reports_the_state_in_which_it_ended(self) -> None:
        @tool
        class Shop:
            def __init__(self) -> None:
                self._sold: list[str] = []

            def sell(self, what: str) -> str:
                """Sells something."""
                self._sold.append(what)
                return "sold"

            @final_state
            def state(self) -> dict[str, Any]:
                return {"sold": self._sold}

        made = exported()
        self.assertEqual([function.name for function in made.functions], ["sell"])
        state = made.open(None, {})
        made.answer(state, None, "sell", {"what": "tea"})
        self.assertEqual(made.finish(state), {"sold": ["tea"]})

    def test_a_tool_has_one_final_state(self) -> None:
        with self.assertRaisesRegex(TypeError, "`one` and `two` both have @final_state: a tool has one"):

            @tool
            class Shop:
                def sell(self) -> str:
                    return "sold"

                @final_state
                def one(self) -> int:
                    return 1

                @final_state
                def two(self) -> int:
                    return 2

    def test_plain_functions_have_no_state(self) -> None:
        @tool(pure=True)
        def shout(text: str, params: Params) -> str:
            """Writes in capitals."""
            return text.upper() * params.limit

        @tool(pure=True)
        def lengths(texts: list[str]) -> dict[str, int]:
            """Counts characters."""
            return {text: len(text) for text in texts}

        made = exported()
        self.assertEqual((made.params, made.pure, made.open(Params(), {})), (Params, True, None))
        self.assertEqual(made.answer(None, Params(2), "shout", {"text": "a"}), "AA")
        self.assertEqual(made.answer(None, Params(), "lengths", {"texts": ["ü"]}), '{"ü": 1}')

    def test_a_schema_follows_from_annotations_and_docstring(self) -> None:
        @tool
        def search(
            query: str,
            kind: Literal["web", "news"] = "web",
            page: Annotated[int, {"minimum": 1}] = 1,
            site: Optional[str] = None,
            weights: dict[str, float] = {},
            exact: Annotated[bool, "Whether words stand together."] = False,
        ) -> str:
            """Searches for pages.

            It returns ten of them.

            Args:
                query: What to search for,
                    in words.
                kind: Where.
            """
            return query

        described = exported().functions[0].described
        self.assertEqual(described.description, "Searches for pages.\n\nIt returns ten of them.")
        self.assertEqual(
            described.parameters,
            {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "What to search for, in words."},
                    "kind": {"type": "string", "enum": ["web", "news"], "description": "Where.", "default": "web"},
                    "page": {"type": "integer", "minimum": 1, "default": 1},
                    "site": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    "weights": {"type": "object", "additionalProperties": {"type": "number"}, "default": {}},
                    "exact": {"type": "boolean", "description": "Whether words stand together.", "default": False},
                },
                "required": ["query"],
                "additionalProperties": False,
            },
        )

    def test_a_schema_may_be_set(self) -> None:
        given = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^a"}}, "required": ["x"]}

        @tool
        @schema(given)
        def f(x):  # type: ignore[no-untyped-def]
            """Does it."""
            return x

        self.assertEqual(exported().functions[0].described.parameters, given)

    def test_what_a_policy_could_not_call_is_refused(self) -> None:
        def no_docstring(x: int) -> str:
            return ""

        def no_annotation(x) -> str:  # type: ignore[no-untyped-def]
            """Does it."""
            return ""

        def no_schema(x: complex) -> str:
            """Does it."""
            return ""

        def any_number(*x: int) -> str:
            """Does it."""
            return ""

        def other_argument(x: int) -> str:
            """Does it.

            Args:
                y: It.
            """
            return ""

        async def later(x: int) -> str:
            """Does it."""
            return ""

        class Empty:
            pass

        class Wrong:
            def __init__(self, sample: Any) -> None:
                pass

        for made, words in [
            (no_docstring, "no docstring"),
            (no_annotation, "`x` of `no_annotation` has no annotation"),
            (no_schema, "`x` of `no_schema` is annotated as <class 'complex'>"),
            (any_number, "an argument has a name"),
            (other_argument, "describes `y`, which is not an argument"),
            (later, "is async"),
            (Empty, "has no function"),
            (Wrong, "takes `sample`"),
        ]:
            exports.exported.clear()
            with self.subTest(made=made), self.assertRaises(TypeError) as raised:
                tool(made)
            self.assertIn(words, str(raised.exception))

    def test_an_answer_is_something(self) -> None:
        @tool
        def nothing() -> None:
            """Does it."""

        with self.assertRaisesRegex(TypeError, "`nothing` returned None"):
            exported().answer(None, None, "nothing", {})

    def test_there_is_one_tool(self) -> None:
        @tool
        class One:
            def f(self) -> str:
                """Does it."""
                return ""

        with self.assertRaisesRegex(TypeError, "both a tool"):
            tool(type("Two", (), {"__module__": __name__, "f": One.f}))
        with self.assertRaisesRegex(TypeError, "make `g` one of its methods"):

            @tool
            def g() -> str:
                """Does it."""
                return ""


if __name__ == "__main__":
    unittest.main()
