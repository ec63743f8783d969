"""Grammars that bind the responses of a server."""
import itertools
from typing import Any, Iterator

from bodies import CHAT, PLAIN, ask, tell
from inputs import BEYOND, MB, Place, Request, deep, nested

SELF = {"$ref": "#"}
TEXTS = [f"text{number}" for number in range(2000)]
REGEXES = {
    "options before the same": "a?" * 2000 + "a" * 2000, "counts of counts": "((a{1,99}){1,99}){1,99}",
    "a count beyond all": f"a{{{BEYOND}}}", "a long count of letters": r"\p{L}{0,4000}", "many stars": ".*" * 900 + "x",
    "stars within stars": deep(180, "a", "(", ")*"), "deep groups": deep(4_000, "a", "(", ")"),
    "many words": "|".join(TEXTS[:1500]), "words that begin alike": "|".join("a" * length for length in range(1, 170)),
    "a look ahead": "(?=a)a", "a reference back": r"(a+)\1", "letters of any case": "(?i)" + "straße" * 1500,
    "nothing at all": "[^\\s\\S]", "an end that never comes": "(a|b)*c(a|b){4000}",
    "a letter beyond all": r"\u{110000}",
    "nothing": "()*", "a class of all": "[\\u0000-\\U0010ffff]{0,3000}", "and-not": "[a-z&&[^aeiou]--[xyz]]+",
    "a byte": r"(?-u:\xff)+", "zero": "a\0b",
}
CHOICES: dict[str, Any] = {
    "many": TEXTS, "too many": [f"{at:05}" for at in range(14_000)], "one twice": ["a", "a"], "lists": [["a"]],
    "numbers": [1, 2.5], "a long one": ["x" * 60_000], "marks of turns": ["<|im_end|>", "<|im_start|>"],
    "half a character": ["\ud800"], "a text": "abc", "begin alike": ["a" * length for length in range(1, 350)],
    "all white": [" " * 900, "\n", "\u2028"],
}
DOUBLED = "".join(f"r{at}: r{at + 1} r{at + 1}\n" for at in range(60))
RULES = "start: r0\n" + "".join(f'r{at}: "{at}" r{at + 1} | "x"\n' for at in range(2500)) + 'r2500: "y"\n'
BOTH = " & ".join(f"/(.{{{at}}})*/" for at in (7, 11, 13, 17, 19))
GRAMMARS = {
    "rules that double": f'start: r0\n{DOUBLED}r60: "a"\n', "no end": 'start: "a" start\n',
    "begins with itself": 'start: start "a" | "a"\n', "nothing again and again": 'start: x*\nx: "a"? y\ny: x?\n',
    "a terminal in itself": 'start: A\nA: A "a" | "a"\n', "a count of counts": 'start: (("a"~1..900)~1..900)~1..900\n',
    "a count beyond all": f'start: "a"~{BEYOND}\n', "a library": "%import common.NUMBER\nstart: NUMBER\n",
    "ignores all": 'start: "a" "b"\n%ignore /(.|\\n)*/\n',
    "many ways": "start: x~40\nx: A | B | AB\nA: /a*/\nB: /a+/\nAB: /a?a?/\n",
    "many rules": RULES,
    "a rule twice": 'start: "a"\nstart: "b"\n', "a name twice": 'start: A\nA: "a"\nA: "b"\n',
    "most tokens": f'start: x\nx[max_tokens={BEYOND}]: /.*/\n', "a stop of nothing": 'start: x\nx[stop=""]: /.*/\n',
    "a long suffix": f'start: x\nx[suffix="{"s" * 9000}"]: /.*/\n', "marks": "start: <|im_end|> <|im_start|>\n",
    "a token beyond all": f"start: <[{BEYOND}]>\n", "another grammar": "start: @other\n",
    "settings": '%llguidance {"x": 1}\nstart: "a"\n',
    "an escape": 'start: "\\x1b[2J"\n\x1b[2J', "all at once": f"start: A\nA: {BOTH}\n",
    "all but": "start: A\nA: ~/(.{300})*/\n",
}
PICK = {"anyOf": [{"const": "a"}, {"const": "b"}, {"type": "integer"}]}
NARROW = [{"anyOf": [{"minimum": at}, {"maxLength": at}, {"pattern": "a" * at}]} for at in range(1, 26)]
SCHEMAS: dict[str, Any] = {
    "a long text": {"type": "string", "minLength": MB}, "a text beyond all": {"type": "string", "maxLength": BEYOND},
    "a long list": {"type": "array", "minItems": MB, "items": {"type": "null"}},
    "a list beyond all": {"type": "array", "minItems": BEYOND}, "choices of choices": {"allOf": NARROW},
    "a list of choices": {"type": "array", "prefixItems": [PICK] * 2000, "minItems": 2000},
    "many names": {"type": "object", "properties": dict.fromkeys(TEXTS, PICK)},
    "many required names": {"type": "object", "properties": dict.fromkeys(TEXTS, PICK), "required": TEXTS},
    "names of patterns": {"type": "object", "patternProperties": {f"^{name}.*$": PICK for name in TEXTS[:400]}},
    "in itself": {"type": "object", "properties": {"a": SELF, "b": SELF}, "additionalProperties": SELF},
    "only in itself": {"type": "object", "properties": {"a": SELF}, "required": ["a"]},
    "a ring": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    "a chain": {"$ref": "#/$defs/0", "$defs": {**{str(at): {"$ref": f"#/$defs/{at + 1}"} for at in range(3000)},
        "3000": {"type": "null"}}},
    "deep": nested(100, lambda inner: {"type": "array", "items": inner, "minItems": 1}, PICK),
    "much of one": {"anyOf": [{"type": "object", "properties": {name: PICK}, "required": [name]} for name in TEXTS]},
    "one of many": {"oneOf": [{"pattern": f"^{name}"} for name in TEXTS[:300]]},
    "a large enum": {"enum": TEXTS * 3}, "a deep constant": {"const": nested(120, lambda inner: [inner], 1)},
    "a small part": {"type": "number", "multipleOf": 5e-324},
    "a narrow range": {"type": "number", "exclusiveMinimum": 0, "maximum": 5e-324},
    "a wide range": {"type": "integer", "minimum": -BEYOND, "maximum": 10**60},
    "odd names": {"type": "object", "properties": {"\0": PICK, "\u202e": PICK, "\ud83d": PICK}, "required": ["\0"]},
    "a pattern and a length": {"type": "string", "pattern": "^(a|b|ab)*$", "minLength": 900, "maxLength": 3000},
    "an address elsewhere": {"$ref": "http://127.0.0.1:9/schema.json"}, "of no kind": {"type": []}, "false": False,
    "one of many names": {"type": "object", "properties": dict.fromkeys(TEXTS, {}), "minProperties": 1,
        "additionalProperties": False},
    "at most one of many names": {"type": "object", "properties": dict.fromkeys(TEXTS, {}), "maxProperties": 1,
        "additionalProperties": False},
    "names without end": {"type": "object", "properties": {f"{at:x}": {} for at in range(25_000)}},
    "all formats": {"type": "array", "prefixItems": [{"type": "string", "format": name} for name in ("uri", "email",
        "duration", "ipv6", "date-time", "hostname")], "minItems": 6},
    "odd white space": {"x-guidance": {"whitespace_pattern": "(a*)*", "item_separator": "x" * 9000}, "type": "array"},
}


def grammars(place: Place) -> Iterator[Request]:
    """Each kind of grammar, with responses that may become long."""
    kinds = {"regex": REGEXES, "choice": CHOICES, "grammar": GRAMMARS, "json": SCHEMAS}
    for kind, sources in kinds.items():
        for name, source in sources.items():
            field = f"guided_{kind}"
            body = ask(max_tokens=120, n=4, seed=3, **{field: source})
            # A grammar may need too much only after some tokens.
            yield Request(f"{kind}: {name}", PLAIN, body, f"{field}|the grammar|the body")
    yield Request("two grammars", PLAIN, ask(guided_regex="a", structured_outputs={"regex": "b"}), "guided_regex")
    digits = {"structured_outputs": {"regex": "[0-9]{200}"}, "max_tokens": 100}
    yield Request("many responses", PLAIN, {**ask(prompt=["a"] * 32, n=128), **digits, "max_tokens": 4}, "structured")
    yield Request("log-probabilities", PLAIN, {**ask(logprobs=20, n=64), **digits}, "structured")
    yield Request("a stream", CHAT, tell(stream=True, n=64, **digits), "structured")
    against = {str(at): -100 for at in range(259)}
    yield Request("a bias against all", PLAIN, {**ask(logit_bias=against), **digits}, "bias")
    yield Request("a stop in it", PLAIN, {**ask(stop=[str(at) for at in range(10)]), **digits}, "stop")
    for name, tools in {"no tools": [], "many tools": [TEXTS[at] for at in range(128)]}.items():
        tools = [{"type": "function", "function": {"name": tool, "parameters": SCHEMAS["in itself"]}} for tool in tools]
        named = {"type": "function", "function": {"name": "text7"}}
        for choice in ("required", named, [], {"function": "x" * 100_000}):
            yield Request(f"{name}: {str(choice)[:9]}", CHAT, tell(tools=tools, tool_choice=choice), "tool|prompt")
    bound = itertools.product(("json_object", "json_schema", "regex", "x" * 100_000), (None, {}, {"schema": 5}))
    for kind, schema in bound:
        body = tell(max_tokens=100, response_format={"type": kind, "json_schema": schema})
        yield Request(f"a format {kind[:12]} of {schema}", CHAT, body, "response_format")
