"""Serves rewards to the tests: `reward_server.py KIND`, which prints its address.

KIND is `letter`, the rule of the tests' project; `shortest`, which sees groups; `verl`, written for verl; or `wrong`,
whose answers break the protocol.
"""

import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "sdk" / "python"))

from gavel import Sample, Unavailable, service
from gavel.verl import scorer

asked = 0
counting = threading.Lock()


def letter(sample: Sample) -> float:
    """Fails now and then, as a service does."""
    global asked
    with counting:
        asked += 1
        if asked % 20 == 0:
            raise Unavailable("no worker is free")
    return float(re.fullmatch(r"(?s).*[a-z].*", sample.response) is not None)


def shortest(samples: list[Sample]) -> list[float]:
    least = min(len(sample.response) for sample in samples)
    return [float(len(sample.response) == least) for sample in samples]


def compute_score(data_source, solution_str, ground_truth, extra_info):
    return {"score": float(ground_truth in solution_str), "index": extra_info["index"]}


class Wrong(BaseHTTPRequestHandler):
    """Each path has its own answer."""

    tries: dict[str, int] = {}

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        tries = self.tries[self.path] = self.tries.get(self.path, 0) + 1
        status, body = {
            "/text": (200, b"fine"),
            "/few": (200, b'{"verdicts": []}'),
            "/inf": (200, b'{"verdicts": [{"score": 1e999}]}'),
            "/away": (404, b"not here"),
            "/key": (401, b"who are you?"),
            "/late": (503, b"busy") if tries < 3 else (200, b'{"verdicts": [{"score": 0.5}]}'),
            "/busy": (503, b"busy"),
            "/flood": (200, b"x" * (64 << 20)),
        }[self.path]
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args) -> None:
        pass


kind = sys.argv[1]
if kind == "wrong":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Wrong)
else:
    server = service.server({"letter": letter, "shortest": shortest, "verl": scorer(compute_score)}[kind])
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
