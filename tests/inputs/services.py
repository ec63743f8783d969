"""Answers of services, judges and hubs."""
import gzip
import http.server
import itertools
import json
import multiprocessing
import time
import urllib.parse
from contextlib import contextmanager
from typing import Any, Callable, Iterator

from checkpoints import checkpoint
from inputs import BEYOND, Input, Link, MB, PIPE, Place, ZERO, deep, encoded
from tool_servers import ROWS, config


def http_answer(body: Any, status: str = "200 OK", *fields: str) -> bytes:
    """An answer, with its length unless a field states one."""
    content = encoded(body)
    if not any("length" in field or "chunked" in field for field in fields):
        fields = (f"content-length: {len(content)}", *fields)
    return "\r\n".join([f"HTTP/1.1 {status}", *fields, "", ""]).encode() + content


@contextmanager
def outside(answers: dict[str, Callable[[bytes], Any]]) -> Iterator[str]:
    """The address of a server in another process. Below `/NAME`, a function makes the bytes or pieces for a request."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            answer = answers[urllib.parse.unquote(self.path.split("/")[1])]
            pieces = answer(encoded(self.headers.get("authorization", "")) + body)
            for piece in [pieces] if isinstance(pieces, bytes) else pieces:
                self.wfile.write(piece)

        do_GET = do_POST

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    # Clients leave before they have read everything.
    server.handle_error = lambda *_: None
    process = multiprocessing.get_context("fork").Process(target=server.serve_forever)
    process.start()
    server.server_close()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        process.kill()
        process.join()


def below(address: str, name: str) -> str:
    return f"{address}/{urllib.parse.quote(name)}"


def endless(start: bytes, piece: bytes) -> Callable[[bytes], Iterator[bytes]]:
    return lambda _: itertools.chain([start], itertools.repeat(piece))


def slowly(start: bytes, piece: bytes) -> Iterator[bytes]:
    yield start
    while True:
        time.sleep(0.5)
        yield piece


def fixed(*answer: Any) -> Callable[[bytes], bytes]:
    return lambda _: http_answer(*answer)


IN_CHUNKS = http_answer(b"", "200 OK", "transfer-encoding: chunked")


def transports(body: Any) -> dict[str, Callable[[bytes], Any]]:
    """What a server may do in place of the answer that is expected."""
    long = lambda text, status, *fields: lambda _: http_answer(text * (20 * MB), status, *fields)
    spaces = gzip.compress(b" " * (100 * MB), 1)
    return {
        "less than its length": fixed(body, "200 OK", "content-length: 900000000"),
        "a length beyond all": fixed(body, "200 OK", f"content-length: {BEYOND}"),
        "no end": endless(IN_CHUNKS, b"100000\r\n" + b" " * MB + b"\r\n"),
        "a slow answer": lambda _: slowly(IN_CHUNKS, b"1\r\n \r\n"),
        "fields without end": endless(b"HTTP/1.1 200 OK\r\n", b"a: " + b"x" * 9000 + b"\r\n"),
        "a status without end": endless(b"HTTP/1.1 200 ", b"x" * 9000), "no HTTP": lambda _: b"SSH-2.0-x\r\n" * 100,
        "informs without end": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        "many fields": fixed(body, "200 OK", *[f"f{at}: x" for at in range(9000)]),
        "status 999": long("x", "999 No"), "a redirect to itself": fixed(b"", "307 Go", "location: ?again"),
        "a redirect to a file": fixed(b"", "302 Go", "location: file:///etc/passwd"),
        "gzip": fixed(spaces, "200 OK", "content-encoding: gzip"), "no UTF-8": fixed(b"\xff\xfe" + encoded(body)),
        "deep lists": fixed(deep(100_000)), "twenty megabytes": long(" ", "200 OK"),
        "the key": lambda request: http_answer(request, "400 No"),
        **{f"a wait of {wait}": fixed(body, "429 No", f"retry-after: {wait}") for wait in ("-1", "1e999", BEYOND)},
    }


def verdict(**fields: Any) -> Callable[[bytes], bytes]:
    return fixed({"verdicts": [{"score": 1.0, **fields}]})


VERDICTS: dict[str, Callable[[bytes], bytes]] = {
    **{f"the score {score[:9]}": fixed('{"verdicts": [{"score": ' + score + "}]}") for score in ("NaN", "1e999",
        "-1e308", "0." + "9" * 9_000)},
    "many verdicts": fixed({"verdicts": [{"score": 1}] * 100_000}),
    "a long note": lambda _: verdict(note="n" * (10 * MB))(_),
    "many metrics": verdict(metrics={f"m{at}": at for at in range(9000)}),
    "a long metric": verdict(metrics={"a" * 100_000: 1}),
    "credit past the end": verdict(credit=[{"message": 9, "start": 0, "end": 2**31, "value": 1}]),
    "much credit": verdict(credit=[{"message": 0, "start": 0, "end": 1, "value": 1e30}] * 50_000),
}


def service(
    place: Place, address: str, name: str, files: dict[str, Any], says: str, share: str = "", secret: str = ""
) -> Input:
    """Rows that a service scores, with a limit that is shared, or with a key."""
    params, grant = {"url": below(address, name), "retries": 1}, f'http = ["{address}"], clock = "real"'
    options = ["--data", "rows.jsonl", "--out", "out.jsonl", "--timeout", "4s"]
    if secret:
        params["api_key_env"], grant = secret, f'{grant}, env = ["{secret}"]'
    if share:
        limits = f"requests_per_second = 100, concurrency = 2, tokens_per_minute = 1000, share = {json.dumps(share)}"
        options, grant = [*options, "--limiter", f"turns={{ {limits} }}"], f'{grant}, limit = "turns"'
    plugin = ["--plugin", place.plugin("service"), "--params", json.dumps(params), "--grant", f"service={{ {grant} }}"]
    return Input(name, {"rows.jsonl": ROWS, **files}, ["score", *plugin, *options], says)


def service_inputs(place: Place) -> Iterator[Input]:
    ways = {**transports({"verdicts": [{"score": 1.0}]}), **VERDICTS}
    with outside(ways) as address:
        for name in ways:
            yield service(place, address, name, {}, "service", secret="HOSTILE_KEY")


def reply(content: Any = "Score: 7", **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}, **more}
    return {"choices": [choice], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}


def usage(used: Any) -> Callable[[bytes], bytes]:
    return fixed(json.dumps(reply()).replace("10,", f"{used},"))


def limits(value: str) -> Callable[[bytes], bytes]:
    return fixed(reply(), "200 OK", *(f"x-ratelimit-{which}-tokens: {value}" for which in ("remaining", "reset")))


USAGES = {f"usage of {used}": usage(used) for used in ("-5", 2**32 + 1, "1e999", "NaN", '"5"')}
LIMITS = {f"limits of {value}": limits(value) for value in ("-5", "1e308", "NaN", "99999999h")}
REPLIES: dict[str, Callable[[bytes], bytes]] = {
    "choices of null": fixed({"choices": [None]}), "many choices": fixed({"choices": reply()["choices"] * 100_000}),
    "a long reply": lambda _: http_answer(reply("Score: 7 " * MB)), "open thoughts": fixed(reply("<think>" * 100_000)),
    "open brackets": fixed(reply("[[" * 500_000 + "7")),
    "many numbers": lambda _: http_answer(reply("7/10 " * 300_000)),
    "deep JSON": fixed(reply('{"score": ' + deep(100_000) + "}")),
    "calls": fixed(reply(message={"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]})),
}
JUDGED = """
[[reward]]
name = "judge"
path = "JUDGE"
params = { mode = "single" }
grant = { chat = ["judge"] }
[chat.judge]
base_url = "ADDRESS"
model = "m"
price = { prompt = 0.5, completion = 1e6 }
[budget]
money = 0.5
"""


def judge_inputs(place: Place) -> Iterator[Input]:
    ways = {**transports(reply()), **USAGES, **LIMITS, **REPLIES}
    command = ["score", "--plugin", place.plugin("llm-judge"), "--params", '{"mode": "single", "retries": 0}']
    command += ["--grant", 'llm-judge={ chat = ["judge"] }', "--limiter", "turns={ tokens_per_minute = 4000000000 }"]
    command += ["--data", "rows.jsonl", "--out", "out.jsonl", "--timeout", "4s"]
    with outside(ways) as address:
        for name in ways:
            chat = f'base_url = "{below(address, name)}", model = "m", api_key_env = "HOSTILE_KEY", timeout = "2s"'
            chat = f'judge={{ {chat}, retries = 1, limit = "turns", price = {{ prompt = 1.0, completion = 1.0 }} }}'
            yield Input(name, {"rows.jsonl": ROWS}, [*command, "--chat", chat], "judge")
        for name in USAGES:
            tables = JUDGED.replace("JUDGE", place.plugin("llm-judge")).replace("ADDRESS", below(address, name))
            yield config(place, tables, "judge|money", "--log-level=warn")._replace(name=f"a budget with {name}")


COMMIT = "a" * 40
# Files below a repository of the hub's cache.
CACHES: dict[str, dict[str, Any]] = {
    "as it should be": {}, "a commit above": {"refs/main": "../../.."}, "a long commit": {"refs/main": COMMIT * 9000},
    "a pipe as commit": {"refs/main": PIPE}, "a device as commit": {"refs/main": ZERO},
    "a device": {f"snapshots/{COMMIT}/tokenizer.json": ZERO},
    "a link to itself": {f"snapshots/{COMMIT}/config.json": Link("config.json")},
    "snapshots elsewhere": {"refs/main": "b" * 40, f"snapshots/{'b' * 40}": Link("/proc/self")},
}
# A hub is asked again for half a minute after other answers.
AT_ONCE = ["no end", "status 999", "a redirect to itself", "gzip", "no UTF-8", "deep lists", "twenty megabytes"]


def listing(*files: dict[str, Any], sha: str = COMMIT) -> Callable[[bytes], bytes]:
    usual = {"rfilename": "config.json", "size": 10, "blobId": "b" * 40}
    return lambda _: http_answer({"sha": sha, "siblings": [{**usual, **file} for file in files]})


LISTINGS: dict[str, Callable[[bytes], bytes]] = {
    "a name above": listing({"rfilename": "../../x"}), "a long name": lambda _: listing({"rfilename": "n" * MB})(_),
    "a path as hash": listing({"blobId": "../x"}), "a path as commit": listing(sha="../x"),
    "many files": lambda _: listing(*({"rfilename": f"{at}.json"} for at in range(300_000)))(_),
}


def hub_inputs(place: Place) -> Iterator[Input]:
    command = ["generate", "-m", "o/m", "--chat", "--prompt", "a", "--max-tokens", "2"]
    cached = {f"snapshots/{COMMIT}/{path[2:]}": content for path, content in checkpoint().items()}
    whole = {"refs/main": COMMIT, **cached}
    for name, change in CACHES.items():
        files = {f"hf/hub/models--o--m/{path}": content for path, content in {**whole, **change}.items()}
        yield Input(f"a cache: {name}", files, command, "o/m|hf/")
    ways = transports({"sha": COMMIT, "siblings": []})
    ways = {name: ways[name] for name in AT_ONCE} | LISTINGS
    with outside(ways) as address:
        for name in ways:
            yield Input(f"a hub: {name}", {"hub.txt": below(address, name)}, command, "o/m")
