"""Schemas of tools, and arguments for them."""
from typing import Any, Iterator

from inputs import Input, MB, Place, deep, lines, nested

NAMES = [f"name{number}" for number in range(2000)]
SELF = {"$ref": "#"}
# A value that follows a schema which refers to itself.
WITHIN = nested(120, lambda value: {"in": value, "by": 1}, "leaf")
# Schemas, and arguments for them.
SCHEMAS: dict[str, tuple[Any, Any]] = {
    "denies itself": ({"not": SELF}, {}),
    "is one of itself": ({"oneOf": [{"type": "string"}, *[{"properties": {"in": SELF}}] * 3]}, WITHIN),
    "is itself if itself": ({"if": SELF, "then": SELF, "else": SELF}, WITHIN),
    "is a ring": ({**SELF,
        "$defs": {name: {"$ref": f"#/$defs/{next}"} for name, next in zip(NAMES, NAMES[1:] + NAMES)}}, {}),
    "refers to a server": ({"$ref": "http://127.0.0.1:9/schema.json"}, {}),
    "refers to nothing": ({"allOf": [{"$ref": text} for text in ("#//", "#/~2", "#/%zz", "#nowhere")]}, {}),
    "has odd identifiers": ({"allOf": [{"$id": text} for text in ("", "#", "urn:", "http://[", "\u202e")]}, {}),
    "depends on all": ({"dependentSchemas": {name: SELF for name in NAMES}}, dict.fromkeys(NAMES)),
    "is of an old draft": ({"$schema": "http://json-schema.org/draft-03/schema#", "extends": SELF}, {}),
    "evaluates little": ({"anyOf": [{"properties": {name: True}} for name in NAMES], "unevaluatedProperties": False},
        dict.fromkeys(NAMES)),
    "counts oddly": ({"properties": {"by": {"contains": True, "minContains": 1e308, "maxContains": 5e-324}}},
        {"by": [1]}),
    "compares long values": ({"properties": {"by": {"uniqueItems": True}}}, {"by": [[NAMES]] * 40}),
    "has a long enum": ({"properties": {"by": {"items": {"enum": [[name] * 9 for name in NAMES]}}}},
        {"by": [NAMES[:9]] * 900}),
    "has many types": ({"type": ["object", "string"] * 4000}, {}),
    "has many patterns": ({"patternProperties": {f"{name}$": False for name in NAMES[:300]}}, dict.fromkeys(NAMES)),
    "divides by little": ({"properties": {"by": {"multipleOf": 5e-324}}}, {"by": 1e308}),
    "divides by nothing": ({"properties": {"by": {"multipleOf": 0}}}, {"by": 1}),
    "is a ring by names": ({"$dynamicAnchor": "a", "allOf": [{"$dynamicRef": "#a"}] * 900}, {}),
    "requires much": ({"required": NAMES * 9}, {}), "has a deep constant": ({"const": WITHIN}, WITHIN),
    "looks ahead": ({"propertyNames": {"pattern": "^(?!.*(.)\\1)[a-z0-9]+$"}}, dict.fromkeys(NAMES)),
}
FORMATS = {"email": "a@", "idn-hostname": "ä.", "iri": "ä%", "uri-template": "{a}"}
PATTERNS = {
    "goes back": r"^(([a-z])+.)+[A-Z]([a-z])+$", "repeats": r"^(.*)(.*)(.*)\1\2\3!$",
    "has many classes": r"^[\p{L}\u{10000}-\u{10FFFF}]{900}$", "is deep": deep(60_000, "a", "(?:", ")"),
    "looks deep": deep(60_000, "", "(?=", ")"), "counts": "(((a{1,90}){1,90}){1,90})",
}
ARGUMENTS: dict[str, Any] = {
    "deep lists": '{"by": ' + deep(100_000) + "}", "a number beyond any": '{"by": 1e999999999}',
    "a million digits": lambda: '{"by": ' + "9" * MB + "}", "a mark before": '\ufeff{"by": 1}',
    "a name often": lambda: "{" + ", ".join(['"by": 1'] * 100_000) + "}", "half a character": '{"by": "\\ud800"}',
    "nothing": "", "a long text": lambda: '{"by": "' + "x" * (10 * MB) + '"}',
    "many lists": lambda: '{"by": [' + "[]," * MB + "[]]}", "an escape in a name": '{"\\u001b[2J": 1}',
}


def tool_inputs(place: Place) -> Iterator[Input]:
    def session(name: str, arguments: Any, schema: Any = None) -> Input:
        call = lambda name, arguments, **expect: {"name": name, "arguments": arguments, "expect": expect}
        text = lambda: arguments() if callable(arguments) else arguments
        calls = lambda: [call("add", text(), outcome="called-wrongly"), call("settings", {}, answer="{}")]
        params = {} if schema is None else {"schema": schema}
        cases = {"cases.jsonl": lambda: lines({"case": "hostile", "params": params, "calls": calls()})}
        return Input(name, cases, ["plugin", "test", place.guest("toolbox"), "--cases", "cases.jsonl"], "`add`|hostile")

    for name, (schema, arguments) in SCHEMAS.items():
        yield session(f"a schema {name}", arguments, schema)
    for name, text in FORMATS.items():
        schema = {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"by": {"format": name}}}
        yield session(f"the format {name}", {"by": text * 20_000}, schema)
    for name, pattern in PATTERNS.items():
        yield session(f"a pattern {name}", {"by": "a" * 50_000}, {"properties": {"by": {"pattern": pattern}}})
    for name, text in ARGUMENTS.items():
        yield session(f"arguments: {name}", text)
