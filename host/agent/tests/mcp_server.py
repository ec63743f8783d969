"""MCP servers for tests: `mcp_server.py SDK time|stdio|http|late`.

SDK is `newest`, or the folder of an earlier one in the Python environment. `time` is the server `mcp-server-time` from
PyPI. The others have functions that end in every way; `late` starts slowly; `http` prints its address, and asks for the key in MCP_TEST_KEY
if there is one.
"""

import asyncio
import os
import socket
import sys
import time
from pathlib import Path

sdk, what = sys.argv[1:]
if sdk != "newest":
    sys.path.insert(0, str(Path(sys.prefix) / sdk))

if what == "late":
    time.sleep(11)

if what == "time":
    from mcp_server_time import main

    sys.argv = ["mcp-server-time", "--local-timezone=UTC"]
    main()
    sys.exit()

try:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
except ImportError:
    from mcp.server.fastmcp import FastMCP as MCPServer
    from mcp.server.fastmcp.exceptions import ToolError

server = MCPServer("test")
calls = 0


@server.tool(description="Adds two numbers")
def add(a: int, b: int) -> int:
    return a + b


@server.tool()
def calculator(expression: str) -> str:
    """The product of two numbers, such as `12 * 13`."""
    first, second = expression.split("*")
    return str(int(first) * int(second))


@server.tool()
def count() -> int:
    """The calls of this server so far."""
    global calls
    calls += 1
    return calls


@server.tool()
def fail() -> str:
    raise ToolError("it is broken")


@server.tool()
def flood(size: int) -> str:
    return "x" * size


@server.tool()
def wait(seconds: float) -> str:
    time.sleep(seconds)
    return "waited"


waiting = []


@server.tool()
async def meet() -> str:
    """Answers once it was called twice."""
    waiting.append(asyncio.Event())
    if len(waiting) == 2:
        for event in waiting:
            event.set()
    await waiting[-1].wait()
    return "met"


@server.tool()
def end() -> str:
    print("the disk is full", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool()
def variable(name: str) -> str:
    return os.environ.get(name, "absent")


def guarded(app, key):
    async def asked(scope, receive, send):
        headers = dict(scope.get("headers", []))
        if scope["type"] == "http" and headers.get(b"authorization") != f"Bearer {key}".encode():
            await send({"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})
        else:
            await app(scope, receive, send)

    return asked


if what in ("stdio", "late"):
    server.run("stdio")
else:
    import uvicorn

    app = server.streamable_http_app()
    if key := os.environ.get("MCP_TEST_KEY"):
        app = guarded(app, key)
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    bound.listen()
    print(f"http://127.0.0.1:{bound.getsockname()[1]}/mcp", flush=True)
    while os.fork():
        os.wait()
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[bound])
