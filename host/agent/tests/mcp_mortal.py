"""An MCP server of 2025-06-18 without an SDK that dies: `mcp_mortal.py FOLDER [SECONDS [EVERY]]`.

FOLDER/lives has a line for each start, and FOLDER/calls one for each call: the life, and the function. In its first life,
calls are held without an answer. `die` ends the server once `after` calls are held, in its first `lives` lives. Later lives
answer with their number. They take SECONDS to start. With EVERY, `calculator` multiplies, but for each EVERY-th call, which
ends the server.
"""

import json
import os
import sys
import time
from pathlib import Path

folder = Path(sys.argv[1])
with open(folder / "lives", "a") as lives:
    lives.write("life\n")
life = len((folder / "lives").read_text().splitlines())
if life > 1 and len(sys.argv) > 2:
    time.sleep(float(sys.argv[2]))


every = int(sys.argv[3]) if len(sys.argv) > 3 else 0


def function(name, properties={}, **annotations):
    schema = {"type": "object", "properties": properties}
    return {"name": name, "description": name, "inputSchema": schema, "annotations": annotations}


FUNCTIONS = [
    function("look", readOnlyHint=True),
    function("set", readOnlyHint=False, idempotentHint=True),
    function("add", readOnlyHint=False, destructiveHint=False),
    function("die", readOnlyHint=True),
    function("calculator", {"expression": {"type": "string"}}),
]
held, ending = 0, None


def call(name, arguments):
    """The text of an answer; none while the call is held."""
    global held, ending
    with open(folder / "calls", "a") as calls:
        calls.write(f"{life} {name}\n")
    if name == "calculator":
        if len((folder / "calls").read_text().splitlines()) % every == 0:
            os._exit(3)
        first, _, second = arguments["expression"].partition("*")
        return str(int(first) * int(second)) if first.strip().isdigit() and second.strip().isdigit() else "not a product"
    if name == "die" and life <= arguments.get("lives", 1):
        ending = arguments.get("after", 0) if life == 1 else 0
    elif life == 1:
        held += 1
    if ending is not None and held >= ending:
        os._exit(3)
    return None if life == 1 else f"life {life}"


for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    reply = {"jsonrpc": "2.0", "id": number}
    if method == "initialize":
        server = {"name": "mortal", "version": "1"}
        reply["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}
    elif method == "tools/list":
        reply["result"] = {"tools": FUNCTIONS}
    elif method == "tools/call":
        text = call(message["params"]["name"], message["params"].get("arguments", {}))
        if text is None:
            continue
        reply["result"] = {"content": [{"type": "text", "text": text}]}
    else:
        reply["error"] = {"code": -32601, "message": "no such method"}
    if number is not None:
        print(json.dumps(reply), flush=True)
