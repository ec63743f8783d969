"""Runs, and servers of tools that speak MCP."""
import json
import sys
from typing import Any, Callable, Iterator

from inputs import Input, MB, Place, deep, lines, of
from schemas import PATTERNS

MODEL = """
[model.init]
vocab_size = 259
hidden_size = 16
intermediate_size = 16
num_hidden_layers = 1
num_attention_heads = 2
max_position_embeddings = 128
"""
RUN = MODEL + """
[rollout]
max_tokens = 8
group_size = 2
[train]
steps = 1
learning_rate = 1e-4
prompts_per_step = 1
[[reward]]
name = "answer"
path = "ANSWER"
"""
DATA = '[data]\ntrain = "rows.jsonl"\n'
ROWS = lines({"prompt": "2+2?", "answer": "4", "response": "Answer: 4"})
# A template with calls in Hermes's form.
CALLS = """{%- for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>
{{ c.function | tojson }}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
# It answers a request with what `answers.json` has for its method, in which "ID" stands for its id.
MCP = """
import json, sys
answers = json.load(open("answers.json"))
for line in sys.stdin:
    message = json.loads(line)
    answer = answers.get(message["method"], answers["other"])
    if answer is not None and "id" in message:
        sys.stdout.buffer.write(answer.replace('"ID"', json.dumps(message["id"])).encode("latin-1") + b"\\n")
        sys.stdout.flush()
"""
TOOLS = f"""
[model]
chat_template = "calls.jinja"
[agent]
kind = "tools"
[[tool]]
name = "remote"
mcp = ["{sys.executable}", "mcp.py"]
limits = {{ timeout = "5s" }}
"""


def config(place: Place, tables: str, says: str = "", *options: str, **files: Any) -> Input:
    """A run with further tables and files, whose names are written with `_` in place of the dot."""
    text = RUN.replace("ANSWER", place.plugin("exact-answer")) + ("" if "[data]" in tables else DATA) + tables
    named = {name.replace("_", "."): content for name, content in files.items()}
    command = ["train", "-c", "run.toml", *(options or ["--dry-run"])]
    return Input("", {"run.toml": text, "rows.jsonl": ROWS, **named}, command, says)


def message(**more: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": "ID", **more})


TOOL = {"name": "add", "description": "Adds.", "inputSchema": {"type": "object"}}
SPOKEN = {
    "other": message(error={"code": -32601, "message": "no such method"}),
    "tools/list": message(result={"tools": [TOOL]}),
    "initialize": message(result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
        "serverInfo": {"name": "s", "version": "1"}}),
}


def listed(*tools: dict[str, Any], **more: Any) -> Callable[[], str]:
    return lambda: message(result={"tools": [{**TOOL, **tool} for tool in tools], **more})


LISTS: dict[str, Any] = {
    "no name": listed({"name": ""}), "a long name": lambda: listed({"name": "n" * MB})(),
    "a name twice": listed({}, {}), "a name with an escape": listed({"name": "\x1b[2J\nok"}), "no tools": listed(),
    "a long description": lambda: listed({"description": "d" * (10 * MB)})(),
    "no schema": listed({"inputSchema": None}),
    "a deep schema": lambda: listed({"inputSchema": 5})().replace("5}", deep(9_000, "1", '{"not": ', "}") + "}"),
    "a deep pattern": listed({"inputSchema": {"type": "object", "pattern": PATTERNS["looks deep"]}}),
    "no JSON": "{" * 100_000, "no UTF-8": SPOKEN["tools/list"].replace("Adds", "\xff"), "a long line": of(" ", 20 * MB),
    "a long error": lambda: message(error={"code": 1, "message": "e" * (10 * MB)}),
    "many functions": lambda: listed(*({"name": f"f{at}"} for at in range(999)))(),
    "pages without end": message(result={"tools": [], "nextCursor": "again"}),
    "an answer often": "\n".join([SPOKEN["tools/list"]] * 900), "half a message": SPOKEN["tools/list"][:50],
    "another id": SPOKEN["tools/list"].replace('"ID"', "5"),
}
STARTS = {
    "a late version": SPOKEN["initialize"].replace("2025", "9" * 9_000),
    "odd capabilities": SPOKEN["initialize"].replace('{"tools": {}}', "5"), "no answer": None,
}


def mcp_inputs(place: Place) -> Iterator[Input]:
    ways = [(name, "tools/list", text) for name, text in LISTS.items()]
    ways += [(name, "initialize", text) for name, text in STARTS.items()]
    for name, method, text in ways:
        made = lambda method=method, text=text: {**SPOKEN, method: text() if callable(text) else text}
        files = {"mcp_py": MCP, "answers_json": made, "calls_jinja": CALLS}
        yield config(place, TOOLS, "`remote`", **files)._replace(name=name)
