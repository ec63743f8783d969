"""An agent as an ordinary program: it thinks, calls a calculator and answers, with Python's standard library alone.

It gets its task on stdin, asks the model at OPENAI_BASE_URL, and prints its answer as the last line.
"""

import ast
import json
import operator
import os
import re
import sys
import urllib.request

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
RULES = "To compute, write a line such as `Compute: 2 + 3`. To answer, write a line such as `Answer: 5`."


def ask(messages, **options):
    """The model's next message."""
    body = json.dumps({"model": os.environ["GAVEL_MODEL"], "messages": messages, **options}).encode()
    headers = {"authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "content-type": "application/json"}
    request = urllib.request.Request(f"{os.environ['OPENAI_BASE_URL']}/chat/completions", body, headers)
    # The gateway is on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=600) as answer:
        return json.load(answer)["choices"][0]["message"]


def compute(text):
    """The value of an expression, or what is wrong with it."""

    def value(node):
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](value(node.left), value(node.right))
        raise ValueError("use whole numbers with +, - and *")

    try:
        return str(value(ast.parse(text.strip(), mode="eval").body))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"error: {error}"


task = json.load(sys.stdin)
turns, options = task["params"].get("turns", 3), task["params"].get("options", {})
messages = [{"role": "system", "content": RULES}, *task["prompt"]]
answer, computed = None, 0
for turn in range(turns):
    message = ask(messages, **options)
    messages.append({"role": "assistant", "content": message["content"]})
    found = re.search(r"Answer:\s*(.+)", message["content"] or "")
    if found:
        answer = found.group(1).strip()
        break
    asked = re.search(r"Compute:\s*(.+)", message["content"] or "")
    computed += asked is not None
    observed = compute(asked.group(1)) if asked else "Compute or answer, please."
    messages.append({"role": "user", "content": f"Result: {observed}"})
print(json.dumps({"answer": answer, "extra": {"computed": computed, "turns": turn + 1}}))
